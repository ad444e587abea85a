"""nvidia-ml-py, unchanged, on the simulated library."""

from collections.abc import Callable

import pytest

from edgeshare.contract.errors import InvalidRequest
from tests.kit.machine.simulated import MIB, Simulated

HEAD = """
import pynvml as nv
def failure(call, *arguments):
    try:
        call(*arguments)
    except nv.NVMLError as error:
        return error.value
nv.nvmlInit()
"""


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


def test_processes_are_listed_with_their_memory(simulated: Simulated) -> None:
    holder = simulated.python('cu.start(); cu.alloc(100 << 20); print("holds", flush=True); time.sleep(60)')
    assert holder.line() == "holds"
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
def users(call):
    return [[each.pid, each.usedGpuMemory] for each in call(zero)]
result([users(nv.nvmlDeviceGetComputeRunningProcesses), users(nv.nvmlDeviceGetComputeRunningProcesses_v2),
        nv.nvmlDeviceGetComputeRunningProcesses(nv.nvmlDeviceGetHandleByIndex(1)),
        nv.nvmlDeviceGetGraphicsRunningProcesses(zero), nv.nvmlDeviceGetMemoryInfo(zero).used])
"""
    used = 356 * MIB
    expected = [[holder.process.pid, used]]
    assert simulated.python(HEAD + script).result() == [expected, expected, [], [], used]
    holder.kill()
    assert simulated.python(HEAD + script).result() == [[], [], [], [], 0]


def test_a_process_finds_itself_in_the_list(simulated: Simulated) -> None:
    """The management library and the driver in one process: neither takes the other for dead."""
    script = """
cu.start()
zero = nv.nvmlDeviceGetHandleByIndex(0)
found = [each.pid for each in nv.nvmlDeviceGetComputeRunningProcesses(zero)]
nv.nvmlShutdown()
uninitialised = failure(nv.nvmlDeviceGetCount)
nv.nvmlInit()
cu.ok("cuCtxSynchronize")
again = [each.pid for each in nv.nvmlDeviceGetComputeRunningProcesses(zero)]
result([found == [os.getpid()], again == [os.getpid()], uninitialised])
"""
    assert simulated.python(HEAD + script).result() == [True, True, 1]


def test_load_is_that_of_the_last_second(simulated: Simulated) -> None:
    load = simulated.burn("load", "--seconds", 60, "--mode", "think", "--kernel-us", 1000, "--think-us", 1000)
    script = """
zero, one = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
time.sleep(1.2)
result([nv.nvmlDeviceGetUtilizationRates(zero).gpu, nv.nvmlDeviceGetUtilizationRates(one).gpu,
        [[each.pid, each.smUtil] for each in nv.nvmlDeviceGetProcessUtilization(zero, 0)],
        failure(nv.nvmlDeviceGetProcessUtilization, one, 0),
        nv.nvmlDeviceGetTemperature(zero, 0) > nv.nvmlDeviceGetTemperature(one, 0),
        nv.nvmlDeviceGetPowerUsage(zero) > nv.nvmlDeviceGetPowerUsage(one) > 0])
"""
    busy, idle, processes, none, hotter, stronger = simulated.python(HEAD + script).result()
    # A kernel of 1 ms and a pause of at least 1 ms.
    assert 5 <= busy <= 50
    assert idle == 0
    assert [pid for pid, _ in processes] == [load.process.pid]
    assert none == 6
    assert hotter
    assert stronger


def test_faults_are_events(simulated: Simulated) -> None:
    script = """
zero, one = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
events = nv.nvmlEventSetCreate()
nv.nvmlDeviceRegisterEvents(one, nv.nvmlDeviceGetSupportedEventTypes(one), events)
print("listens", flush=True)
found = []
for _ in range(4):
    event = nv.nvmlEventSetWait_v2(events, 60_000)
    found.append([event.eventType, event.eventData])
    last = event.device
lost = [failure(nv.nvmlEventSetWait_v2, events, 60_000), failure(nv.nvmlDeviceGetHandleByIndex, 1),
        failure(nv.nvmlDeviceGetName, one), nv.nvmlDeviceGetName(zero)]
nv.nvmlEventSetFree(events)
result([found, lost, nv.nvmlDeviceGetCount()])
"""
    simulated.machine.inject_xid(1, 31)
    listener = simulated.python(HEAD + script)
    assert listener.line() == "listens"
    simulated.machine.inject_xid(0, 13)
    simulated.machine.inject_xid(1, 43)
    simulated.machine.inject_ecc(1)
    simulated.machine.inject_ecc(1, double=True)
    simulated.machine.inject_lost(1)
    # What was before the listener is not told, nor what happens to another GPU.
    assert listener.result() == [[[8, 43], [1, 0], [2, 0], [8, 79]], [15, 15, 15, "Tesla T4"], 2]


def test_waiting_for_an_event_ends_with_its_time(simulated: Simulated) -> None:
    script = """
events = nv.nvmlEventSetCreate()
zero = nv.nvmlDeviceGetHandleByIndex(0)
nv.nvmlDeviceRegisterEvents(zero, nv.nvmlEventTypeXidCriticalError, events)
begin = time.monotonic()
timeout = failure(nv.nvmlEventSetWait_v2, events, 50)
result([timeout, time.monotonic() - begin >= 0.05, failure(nv.nvmlDeviceRegisterEvents, zero, 0x10, events)])
"""
    assert simulated.python(HEAD + script).result() == [10, True, 3]


def test_ecc_errors_are_counted(simulated: Simulated) -> None:
    for _ in range(3):
        simulated.machine.inject_ecc(0)
    simulated.machine.inject_ecc(0, double=True)
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([nv.nvmlDeviceGetTotalEccErrors(zero, kind, 0) for kind in (0, 1)])
"""
    assert simulated.python(HEAD + script).result() == [3, 1]


def test_a_reset_brings_a_lost_gpu_back_and_begins_its_counts_anew(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model="a100")
    machine = simulated.machine
    machine.inject_ecc(0)
    machine.inject_ecc(0, double=True)
    machine.inject_remap(0)
    script = """
zero, one = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
def look():
    return [[nv.nvmlDeviceGetTotalEccErrors(zero, kind, counter) for kind in (0, 1) for counter in (0, 1)],
            nv.nvmlDeviceGetRemappedRows(zero)]
time.sleep(0.2)
before, energy = look(), nv.nvmlDeviceGetTotalEnergyConsumption(zero)
print("looked", flush=True)
while not failure(nv.nvmlDeviceGetName, zero):
    time.sleep(0.01)
lost = failure(nv.nvmlDeviceGetTotalEnergyConsumption, zero)
print("lost", flush=True)
while failure(nv.nvmlDeviceGetName, zero):
    time.sleep(0.01)
fresh, other = (nv.nvmlDeviceGetTotalEnergyConsumption(gpu) for gpu in (zero, one))
result([before, lost, look(), 0 < energy, fresh <= other - energy, other > energy])
"""
    program = simulated.python(HEAD + script)
    assert program.line() == "looked"
    machine.inject_lost(0)
    assert program.line() == "lost"
    machine.reset(0)
    before, lost, after, *energy = program.result()
    assert before == [[1, 1, 1, 1], [0, 0, 1, 0]]
    assert lost == 15
    # Volatile counts begin anew, aggregate ones go on; the row that waited is remapped.
    assert after == [[0, 1, 0, 1], [0, 1, 0, 0]]
    # What it had used when it was looked at, it lacks beside the other GPU, however long the reset was ago.
    assert energy == [True, True, True]


def test_a_gpu_of_before_ampere_remaps_no_rows(simulated: Simulated) -> None:
    script = "result(failure(nv.nvmlDeviceGetRemappedRows, nv.nvmlDeviceGetHandleByIndex(0)))"
    assert simulated.python(HEAD + script).result() == 3


def test_a_gpu_is_as_hot_as_a_fault_says(simulated: Simulated) -> None:
    simulated.machine.set_temperature(1, 97)
    script = "result([nv.nvmlDeviceGetTemperature(nv.nvmlDeviceGetHandleByIndex(index), 0) for index in (0, 1)])"
    assert simulated.python(HEAD + script).result() == [30, 97]
    simulated.machine.set_temperature(1, 0)
    assert simulated.python(HEAD + script).result() == [30, 30]


def test_a_card_without_ecc_says_so(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="rtx3090")
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([failure(nv.nvmlDeviceGetEccMode, zero), failure(nv.nvmlDeviceGetTotalEccErrors, zero, 0, 0),
        nv.nvmlDeviceGetSupportedEventTypes(zero)])
"""
    assert simulated.python(HEAD + script).result() == [3, 3, 8]


def test_an_integrated_gpu_has_no_memory_to_tell_of(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="orin")
    script = """
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([failure(nv.nvmlDeviceGetMemoryInfo, zero), failure(nv.nvmlDeviceGetMemoryInfo, zero, nv.nvmlMemory_v2)])
"""
    assert simulated.python(HEAD + script).result() == [3, 3]


def test_mig_devices_have_names_ids_and_a_gpu(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model=["a100", "a100"], memory_mib=None, mig={1: ["1g.5gb", "2g.10gb"]})
    script = """
whole, divided = nv.nvmlDeviceGetHandleByIndex(0), nv.nvmlDeviceGetHandleByIndex(1)
parts = [nv.nvmlDeviceGetMigDeviceHandleByIndex(divided, place) for place in range(2)]
result({
    "modes": [nv.nvmlDeviceGetMigMode(gpu)[0] for gpu in (whole, divided)],
    "most": [nv.nvmlDeviceGetMaxMigDeviceCount(gpu) for gpu in (whole, divided)],
    "beyond": [failure(nv.nvmlDeviceGetMigDeviceHandleByIndex, gpu, 2) for gpu in (whole, divided)],
    "names": [nv.nvmlDeviceGetName(part) for part in parts],
    "is_part": [bool(nv.nvmlDeviceIsMigDeviceHandle(each)) for each in (divided, *parts)],
    "instances": [[nv.nvmlDeviceGetGpuInstanceId(part), nv.nvmlDeviceGetComputeInstanceId(part)] for part in parts],
    "no_instance": failure(nv.nvmlDeviceGetGpuInstanceId, divided),
    "parents": [nv.nvmlDeviceGetUUID(nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)) for part in parts],
    "by_uuid": [nv.nvmlDeviceGetName(nv.nvmlDeviceGetHandleByUUID(nv.nvmlDeviceGetUUID(part))) for part in parts],
    "memory": [nv.nvmlDeviceGetMemoryInfo(part).total >> 20 for part in parts],
})
"""
    names = ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA A100-SXM4-40GB MIG 2g.10gb"]
    assert simulated.python(HEAD + script).result() == {
        "modes": [0, 1],
        "most": [0, 7],
        "beyond": [3, 6],
        "names": names,
        "is_part": [False, True, True],
        "instances": [[1, 0], [2, 0]],
        "no_instance": 3,
        "parents": [simulated.machine.gpus()[1].uuid] * 2,
        "by_uuid": names,
        "memory": [4864, 9984],
    }


def test_a_mig_device_tells_how_much_of_its_gpu_it_has(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1, model="h100", mig={0: ["3g.40gb", "1g.10gb+me"]})
    script = """
gpu = nv.nvmlDeviceGetHandleByIndex(0)
told = [nv.nvmlDeviceGetAttributes_v2(nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)) for place in range(2)]
result([[getattr(each, name) for name, _ in each._fields_] for each in told]
       + [failure(nv.nvmlDeviceGetAttributes_v2, gpu)])
"""
    # multiprocessors, engines (copy, decoders, encoders, JPEG, OFA), slices (GPU, compute), MiB
    expected = [[60, 3, 3, 0, 3, 0, 3, 3, 40448], [16, 1, 1, 0, 1, 1, 1, 1, 9984], 3]
    assert simulated.python(HEAD + script).result() == expected


def test_a_vgpu_says_that_it_is_one(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=2, model=["t4", "t4-16q"])
    script = "result([nv.nvmlDeviceGetVirtualizationMode(nv.nvmlDeviceGetHandleByIndex(index)) for index in (0, 1)])"
    assert simulated.python(HEAD + script).result() == [0, 2]


def test_a_gpu_is_divided_as_its_model_can_be(simulate: Callable[..., Simulated]) -> None:
    with pytest.raises(InvalidRequest, match="an NVIDIA H100 80GB HBM3 cannot be divided into 1g"):
        simulate(gpus=1, model="h100", mig={0: ["1g.5gb"]})


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


def test_memory_of_every_kind_is_seen_for_each_process_and_in_total(simulated: Simulated) -> None:
    holder = simulated.python(
        """
MIB, size, u64 = 1 << 20, ctypes.c_size_t, ctypes.c_uint64
cu.ok("cuInit", 0)
cu.out("cuMemCreate", u64, size(6 * MIB), (ctypes.c_uint64 * 4)(1, 1, 0, 0), u64(0))
cu.start()
cu.alloc(5 * MIB)
cu.out("cuMemAllocManaged", u64, size(3 * MIB), 1)
plane = (ctypes.c_uint64 * 3)(1024, 1024, 0x20 | 1 << 32)
cu.out("cuArrayCreate_v2", ctypes.c_void_p, plane)
cu.out("cuMemAllocAsync", u64, size(7 * MIB), None)
stream = cu.stream()
cu.ok("cuStreamBeginCapture_v2", stream, 2)
cu.out("cuMemAllocAsync", u64, size(10 * MIB), stream)
graph = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream)
ready = cu.out("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, u64(0))
cu.ok("cuGraphLaunch", ready, stream)
print("holds", flush=True)
time.sleep(60)
"""
    )
    elsewhere = simulated.python(
        """
cu.ok("cuInit", 0)
cu.out("cuMemCreate", ctypes.c_uint64, ctypes.c_size_t(8 << 20), (ctypes.c_uint64 * 4)(1, 1, 0, 0), ctypes.c_uint64(0))
print("holds", flush=True)
time.sleep(60)
"""
    )
    assert (holder.line(), elsewhere.line()) == ("holds", "holds")
    script = """
import pynvml
pynvml.nvmlInit()
def seen(index):
    device = pynvml.nvmlDeviceGetHandleByIndex(index)
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    used = pynvml.nvmlDeviceGetMemoryInfo(device).used
    return [{each.pid: each.usedGpuMemory >> 20 for each in processes}, used >> 20]
result([seen(0), seen(1)])
"""
    first, second = simulated.python(script).result()
    mib = 256 + 6 + 5 + 3 + 4 + 32 + 10
    assert first == [{str(holder.process.pid): mib, str(elsewhere.process.pid): 8}, mib + 8]
    assert second == [{}, 0]
    holder.kill()
    elsewhere.kill()


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
