"""What a Jetson's ``tegrastats`` tells is published, for as long as it is news."""

import pytest

from edgeshare.contract.units import MIB
from tests.kit.labeller.watched import LINE, PATIENCE_S, SERIAL, Machine, Samples

LONG_S = 30
"""Between two lines: what was told is news for three times as long, also on a busy machine."""


def told(device: str, model: str) -> Samples:
    """What the page says of that line."""
    of, part = f"{device},{model}", "edgeshare_accelerator"
    return {
        f"{part}_info,{device},0,{model},": 1,
        f"{part}_utilization_ratio,{of}": 0.37,
        f"{part}_memory_used_bytes,{of}": 3000 * MIB,
        f"{part}_memory_bytes,{of}": 7620 * MIB,
        f"{part}_temperature_celsius,{of}": 49.25,
        f"{part}_power_watts,{of}": 1.28,
        f"{part}_engine_utilization_ratio,{device},EMC,{model}": 0.04,
        f"{part}_engine_utilization_ratio,{device},NVDEC,{model}": 0,
        f"{part}_engine_utilization_ratio,{device},VIC,{model}": 0.35,
        f"{part}_zone_temperature_celsius,{of},cpu": 52.5,
        f"{part}_zone_temperature_celsius,{of},gpu": 49.25,
        f"{part}_zone_temperature_celsius,{of},tj": 52.5,
        f"{part}_rail_power_watts,{of},VDD_IN": 4.8,
        f"{part}_rail_power_watts,{of},VDD_CPU_GPU_CV": 1.28,
        f"{part}_rail_power_watts,{of},VDD_SOC": 1.24,
    }


def tool(up: bool, starts: int, skipped: int) -> Samples:
    """What it says of the tool."""
    return {
        "edgeshare_accelerator_tool_up,tegrastats": up,
        "edgeshare_accelerator_tool_starts_total,tegrastats": starts,
        "edgeshare_accelerator_tool_skipped_lines_total,tegrastats": skipped,
    }


def test_a_jetsons_use_is_published_while_it_is_told(machine: Machine) -> None:
    machine.be_jetson("orin-nano")
    tegrastats = machine.tegrastats()
    watcher = machine.watch()
    run = tegrastats.started()
    assert run.arguments == ["--interval", "500"]
    assert watcher.samples() == tool(up=False, starts=1, skipped=0)
    run.print("Usage: tegrastats [-option]")
    run.print(LINE)
    everything = told(SERIAL, "NVIDIA Jetson Orin Nano")
    assert watcher.until(lambda samples: len(samples) > 3) == everything | tool(up=True, starts=1, skipped=1)
    # What a later line does not say is no longer said.
    run.print("RAM 3000/7620MB GR3D_FREQ 38%")
    last = watcher.until(
        lambda samples: samples.get(f"edgeshare_accelerator_utilization_ratio,{SERIAL},NVIDIA Jetson Orin Nano") == 0.38
    )
    assert len(last) == 4 + 3

    # It hangs: what it said is soon old, and it is started again.
    # It may have been by now.
    hung = watcher.until(lambda samples: len(samples) == 3)
    assert hung in [tool(up=False, starts=starts, skipped=1) for starts in (1, 2)]
    again = tegrastats.started()
    assert again.pid != run.pid
    again.print(LINE)
    assert watcher.until(lambda samples: len(samples) > 3) == everything | tool(up=True, starts=2, skipped=1)
    assert "has said nothing for 5 s; it is started again" in watcher.log()
    assert (watcher.get("/healthz"), watcher.get("/readyz")) == ("ok\n", "ok\n")
    assert watcher.end() == 0
    with pytest.raises(BrokenPipeError):
        again.print(LINE)


def test_a_jetson_without_a_serial_number_is_as_busy(machine: Machine) -> None:
    machine.be_jetson("nano")
    (machine.tree / "sys/firmware/devicetree/base/serial-number").unlink()
    tegrastats = machine.tegrastats()
    watcher = machine.watch(interval_s=LONG_S)
    tegrastats.started().print(LINE)
    samples = watcher.until(lambda samples: len(samples) > 3)
    assert samples == told("", "NVIDIA Jetson Nano") | tool(up=True, starts=1, skipped=0)


def test_a_board_that_is_not_known_is_as_busy(machine: Machine) -> None:
    tegrastats = machine.tegrastats()
    watcher = machine.watch(interval_s=LONG_S)
    tegrastats.started().print(LINE)
    samples = watcher.until(lambda samples: len(samples) > 3)
    assert samples == told("", "") | tool(up=True, starts=1, skipped=0)


def test_one_that_dies_is_started_again_while_its_last_line_is_news(machine: Machine) -> None:
    machine.be_jetson()
    tegrastats = machine.tegrastats(after="echo no such sensor; exit 3")
    watcher = machine.watch(interval_s=LONG_S)
    run = tegrastats.started()
    run.print(LINE)
    watcher.until(lambda samples: samples["edgeshare_accelerator_tool_up,tegrastats"] == 1)
    run.end()
    tegrastats.started()
    after = watcher.until(lambda samples: samples["edgeshare_accelerator_tool_starts_total,tegrastats"] == 2)
    assert after == told(SERIAL, "NVIDIA Jetson Orin Nano") | tool(up=True, starts=2, skipped=1)
    assert "ended with status 3, saying 'no such sensor'; it is started again" in watcher.log()


def test_a_machine_without_any_is_a_normal_one(machine: Machine) -> None:
    watcher = machine.watch()
    assert watcher.samples() == {}
    assert watcher.get("/healthz") == "ok\n"
    assert watcher.end() == 0
    assert "WARNING" not in watcher.log()


def test_the_program_ends_with_a_watcher_that_is_killed(machine: Machine) -> None:
    machine.be_jetson()
    tegrastats = machine.tegrastats()
    watcher = machine.watch()
    run = tegrastats.started()
    watcher.process.kill()
    watcher.process.wait(PATIENCE_S)
    with pytest.raises(BrokenPipeError):
        run.print_until_it_ends()


def test_nvml_tells_of_thors_load_what_tegrastats_does_not(machine: Machine) -> None:
    machine.be_jetson("agx-thor")
    machine.simulate(gpus=1, model="orin")
    tegrastats = machine.tegrastats()
    watcher = machine.watch(interval_s=LONG_S)
    run = tegrastats.started()
    run.print("RAM 4301/125773MB (lfb 28x4MB) CPU [2%@972] GR3D_FREQ @[314,314,314] gpu@38.75C VDD_GPU 5500mW/5000mW")
    samples = watcher.until(lambda samples: len(samples) >= 11)
    of = f"{SERIAL},NVIDIA Jetson AGX Thor"
    assert samples == {
        f"edgeshare_accelerator_info,{SERIAL},0,NVIDIA Jetson AGX Thor,": 1,
        f"edgeshare_accelerator_utilization_ratio,{of}": 0,
        f"edgeshare_accelerator_memory_used_bytes,{of}": 4301 * MIB,
        f"edgeshare_accelerator_memory_bytes,{of}": 125773 * MIB,
        f"edgeshare_accelerator_temperature_celsius,{of}": 38.75,
        f"edgeshare_accelerator_power_watts,{of}": 5.5,
        f"edgeshare_accelerator_zone_temperature_celsius,{of},gpu": 38.75,
        f"edgeshare_accelerator_rail_power_watts,{of},VDD_GPU": 5.5,
        "edgeshare_accelerator_tool_up,nvml": 1,
        **tool(up=True, starts=1, skipped=0),
    }
