"""nvidia-ml-py, unchanged, on the simulated library: which devices there are, what they are, and who sees them."""

from collections.abc import Callable

from tests.kit.machine.nvml_script import HEAD
from tests.kit.machine.simulated import MIB, Simulated


def test_devices_are_what_the_machine_says(simulated: Simulated) -> None:
    script = """
one = nv.nvmlDeviceGetHandleByIndex(1)
pci = nv.nvmlDeviceGetPciInfo(one)
uuid = nv.nvmlDeviceGetUUID(one)
plain, versioned = nv.nvmlDeviceGetMemoryInfo(one), nv.nvmlDeviceGetMemoryInfo(one, nv.nvmlMemory_v2)
result({"count": nv.nvmlDeviceGetCount(), "driver": nv.nvmlSystemGetDriverVersion(),
        "cuda": nv.nvmlSystemGetCudaDriverVersion_v2(), "name": nv.nvmlDeviceGetName(one), "uuid": uuid,
        "index": nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(uuid)), "bus": pci.busId,
        "by_bus": nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(pci.busId)),
        "minor": nv.nvmlDeviceGetMinorNumber(one), "capability": nv.nvmlDeviceGetCudaComputeCapability(one),
        "architecture": nv.nvmlDeviceGetArchitecture(one), "memory": [plain.total, plain.used, plain.free],
        "memory_v2": [versioned.total, versioned.reserved, versioned.used, versioned.free],
        "mig": failure(nv.nvmlDeviceGetMigMode, one), "beyond": failure(nv.nvmlDeviceGetHandleByIndex, 2),
        "no_uuid": failure(nv.nvmlDeviceGetHandleByUUID, "GPU-1"), "ecc": nv.nvmlDeviceGetEccMode(one)})
"""
    gpu = simulated.machine.gpus()[1]
    assert simulated.python(HEAD + script).result() == {
        "count": 2,
        "driver": "550.163.01",
        "cuda": 12040,
        "name": "Tesla T4",
        "uuid": gpu.uuid,
        "index": 1,
        "bus": "00000000:20:00.0",
        "by_bus": 1,
        "minor": 1,
        "capability": [7, 5],
        "architecture": 6,
        "memory": [2048 * MIB, 0, 2048 * MIB],
        "memory_v2": [2048 * MIB, 0, 0, 2048 * MIB],
        "mig": 3,
        "beyond": 2,
        "no_uuid": 6,
        "ecc": [1, 1],
    }


def test_an_integrated_gpu_has_no_memory_to_tell_of(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="orin")
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([failure(nv.nvmlDeviceGetMemoryInfo, zero), failure(nv.nvmlDeviceGetMemoryInfo, zero, nv.nvmlMemory_v2)])
"""
    assert simulated.python(HEAD + script).result() == [3, 3]


def test_a_vgpu_says_that_it_is_one(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model=["t4", "t4-16q"])
    script = "result([nv.nvmlDeviceGetVirtualizationMode(nv.nvmlDeviceGetHandleByIndex(index)) for index in (0, 1)])"
    assert simulated.python(HEAD + script).result() == [0, 2]


def test_the_container_sees_its_own_gpus(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=3)
    uuids = [gpu.uuid for gpu in simulated.machine.gpus()]
    script = """
result([nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetHandleByIndex(index)) for index in range(nv.nvmlDeviceGetCount())])
"""
    shown = f"{uuids[2]},{uuids[1]}"
    assert simulated.python(HEAD + script, NVIDIA_VISIBLE_DEVICES=shown).result() == uuids[1:]
    assert simulated.python(HEAD + script, CUDA_VISIBLE_DEVICES="1").result() == uuids
    assert simulated.python(HEAD + script, NVIDIA_VISIBLE_DEVICES="none").result() == []


def test_without_a_machine_no_driver_is_loaded(simulated: Simulated) -> None:
    script = HEAD.replace("nv.nvmlInit()\n", "") + "result(failure(nv.nvmlInit))"
    assert simulated.python(script, SIMGPU_MACHINE="/nonexistent").result() == 9


def test_a_machine_without_links_says_so_of_each(simulated: Simulated) -> None:
    """A framework goes on where a device has none (3, NOT_SUPPORTED), and not where a function is missing (13)."""
    script = """
one, fabric = nv.nvmlDeviceGetHandleByIndex(1), nv.c_nvmlGpuFabricInfoV_t()
result([failure(nv.nvmlDeviceGetNvLinkState, one, 0),
        failure(nv.nvmlDeviceGetNvLinkCapability, one, 0, nv.NVML_NVLINK_CAP_P2P_SUPPORTED),
        failure(nv.nvmlDeviceGetNvLinkRemotePciInfo, one, 0), failure(nv.nvmlDeviceGetNvLinkRemoteDeviceType, one, 0),
        failure(nv.nvmlDeviceGetGpuFabricInfoV, one, nv.byref(fabric)),
        failure(nv.nvmlDeviceGetGpuFabricInfoV, one, None)])
"""
    assert simulated.python(HEAD + script).result() == [3, 3, 3, 3, 3, 2]
