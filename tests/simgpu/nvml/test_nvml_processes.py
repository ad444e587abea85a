"""nvidia-ml-py, unchanged, on the simulated library: which processes use a GPU, how much of its memory and its time."""

from tests.kit.machine.nvml_script import HEAD
from tests.kit.machine.simulated import MIB, Simulated


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
