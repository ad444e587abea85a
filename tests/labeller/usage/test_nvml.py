"""What NVML tells is published: a simulated library in the real one's place."""

import subprocess

from edgeshare.contract.units import MIB
from simgpu.machine import Machine
from simgpu.native import BURN
from tests.kit.labeller.watched import PATIENCE_S, Samples
from tests.kit.labeller.watched import Machine as Watched

UP = "edgeshare_accelerator_tool_up,nvml"


def of(samples: Samples, device: str) -> dict[str, float]:
    """What is said of one device, by the metric's name."""
    found = (name.split(",") for name in samples)
    return {
        parts[0].removeprefix("edgeshare_accelerator_"): samples[",".join(parts)]
        for parts in found
        if parts[1] == device
    }


def idle(memory_mib: int, power_w: float) -> dict[str, float]:
    return {
        "info": 1,
        "utilization_ratio": 0,
        "memory_used_bytes": 0,
        "memory_bytes": memory_mib * MIB,
        "temperature_celsius": 30,
        "power_watts": power_w,
    }


def test_each_gpu_is_told_of_also_where_models_are_mixed(machine: Watched) -> None:
    directory = machine.simulate(gpus=2, model=["v100", "t4"], reserved_mib=300)
    v100, t4 = (gpu.uuid for gpu in Machine(directory).gpus())
    watcher = machine.watch()
    samples = watcher.until(lambda samples: UP in samples)
    assert f"edgeshare_accelerator_info,{v100},0,Tesla V100-SXM2-16GB," in samples
    assert f"edgeshare_accelerator_info,{t4},1,Tesla T4," in samples
    assert of(samples, v100) == idle(16384 - 300, 30)
    assert of(samples, t4) == idle(15360 - 300, 7)
    assert len(samples) == 2 * 6 + 1


def test_a_gpu_that_works_is_seen_to(machine: Watched) -> None:
    directory = machine.simulate(gpus=2)
    first, second = (gpu.uuid for gpu in Machine(directory).gpus())
    watcher = machine.watch()
    burn = subprocess.Popen(
        [BURN, "--seconds", "600", "--device", "1"], env=machine.environment, stdout=subprocess.DEVNULL
    )
    try:
        samples = watcher.until(lambda samples: of(samples, second).get("utilization_ratio", 0) > 0.5)
        busy = of(samples, second)
        assert busy["utilization_ratio"] <= 1
        assert busy["memory_used_bytes"] > 200 * MIB
        assert busy["temperature_celsius"] > 50
        assert busy["power_watts"] > 35
        assert of(samples, first) == idle(15360, 7)
    finally:
        burn.kill()
        burn.wait(PATIENCE_S)


def test_of_mig_devices_the_memory_is_told_and_whose_parts_they_are(machine: Watched) -> None:
    directory = machine.simulate(gpus=1, model="a100", mig={0: ["1g.5gb", "2g.10gb"]})
    (gpu,) = (gpu.uuid for gpu in Machine(directory).gpus())
    samples = machine.watch().until(lambda samples: UP in samples)
    parts = {name.split(",")[1]: name for name in samples if name.endswith(f",{gpu}")}
    assert [of(samples, part) for part in parts] == [
        {"info": 1, "memory_used_bytes": 0, "memory_bytes": memory_mib * MIB} for memory_mib in (4864, 9984)
    ]
    assert [name.split(",")[3] for name in parts.values()] == [
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A100-SXM4-40GB MIG 2g.10gb",
    ]
    assert of(samples, gpu)["power_watts"] == 40


def test_a_gpu_that_is_lost_is_told_of_no_more_and_the_others_are(machine: Watched) -> None:
    simulated = Machine(machine.simulate(gpus=2))
    first, second = (gpu.uuid for gpu in simulated.gpus())
    watcher = machine.watch()
    watcher.until(lambda samples: len(of(samples, first)) == 6)
    simulated.inject_lost(0)
    samples = watcher.until(lambda samples: not of(samples, first))
    assert samples[UP] == 1
    assert of(samples, second) == idle(15360, 7)


def test_a_driver_that_hangs_holds_up_no_page_and_no_end(machine: Watched) -> None:
    simulated = Machine(machine.simulate(gpus=1))
    (gpu,) = (gpu.uuid for gpu in simulated.gpus())
    watcher = machine.watch()
    watcher.until(lambda samples: len(of(samples, gpu)) == 6)
    simulated.set_silent(0, True)
    assert watcher.until(lambda samples: not of(samples, gpu)) == {UP: 0}
    simulated.set_silent(0, False)
    assert watcher.until(lambda samples: len(samples) > 1)[UP] == 1
    simulated.set_silent(0, True)
    watcher.until(lambda samples: samples == {UP: 0})
    assert watcher.end() == 0


def test_an_integrated_gpu_elsewhere_than_on_a_jetson_has_a_load_and_no_memory(machine: Watched) -> None:
    (gpu,) = (gpu.uuid for gpu in Machine(machine.simulate(gpus=1, model="orin")).gpus())
    samples = machine.watch().until(lambda samples: UP in samples)
    assert of(samples, gpu).keys() == {"info", "utilization_ratio", "temperature_celsius", "power_watts"}
