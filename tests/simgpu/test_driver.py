"""What the driver's calls return, by ctypes."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import MIB, Simulated


def test_calls_before_init_say_so(simulated: Simulated) -> None:
    script = """
pointer = ctypes.c_void_p()
result([cu.cuDeviceGetCount(ctypes.byref(pointer)), cu.cuCtxSynchronize(), cu.cuCtxGetCurrent(ctypes.byref(pointer)),
        cu.cuMemFree_v2(0), cu.cuStreamSynchronize(None), cu.cuInit(1)])
"""
    assert simulated.python(script).result() == [3, 3, 3, 3, 3, 1]


@pytest.mark.misuses(
    "create: no context",
    "cuCtxSynchronize: no context",
    "cuEventCreate: no context",
    "cuMemAlloc_v2: no context",
    "cuStreamSynchronize: no context",
    "load_data: no context",
)
def test_calls_without_a_context_say_so(simulated: Simulated) -> None:
    script = """
cu.ok("cuInit", 0)
place = ctypes.c_uint64()
result([cu.cuCtxSynchronize(), cu.cuMemAlloc_v2(ctypes.byref(place), 1), cu.cuStreamCreate(ctypes.byref(place), 0),
        cu.cuEventCreate(ctypes.byref(place), 0), cu.cuModuleLoadData(ctypes.byref(place), SPIN),
        cu.cuCtxPopCurrent_v2(None), cu.cuStreamSynchronize(None)])
"""
    assert simulated.python(script).result() == [201] * 7


@pytest.mark.misuses("cuEventRecordWithFlags: unknown event", "launch_kernel: unknown function")
def test_null_arguments_are_refused(simulated: Simulated) -> None:
    script = """
cu.start()
result([cu.cuMemAlloc_v2(None, 1), cu.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), 0), cu.cuStreamCreate(None, 0),
        cu.cuEventCreate(None, 0), cu.cuModuleLoadData(None, SPIN), cu.cuDeviceGetCount(None),
        cu.cuMemGetInfo_v2(None, None), cu.cuModuleGetFunction(None, cu.module(), b"spin"),
        cu.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None), cu.cuEventRecord(None, None)])
"""
    assert simulated.python(script).result() == [1, 1, 1, 1, 1, 1, 1, 1, 400, 400]


def test_without_a_machine_there_is_no_device(simulated: Simulated) -> None:
    program = simulated.python("result(cu.cuInit(0))", SIMGPU_MACHINE="/nonexistent")
    assert program.result() == 100


def test_devices_are_what_the_machine_says(simulated: Simulated) -> None:
    script = """
cu.ok("cuInit", 0)
name = ctypes.create_string_buffer(64)
cu.ok("cuDeviceGetName", name, 64, 1)
uuid = ctypes.create_string_buffer(16)
cu.ok("cuDeviceGetUuid_v2", uuid, 1)
bus = ctypes.create_string_buffer(16)
cu.ok("cuDeviceGetPCIBusId", bus, 16, 1)
result({"count": cu.out("cuDeviceGetCount", ctypes.c_int).value, "name": name.value.decode(), "uuid": uuid.raw.hex(),
        "total": cu.out("cuDeviceTotalMem_v2", ctypes.c_size_t, 1).value, "bus": bus.value.decode(),
        "major": cu.out("cuDeviceGetAttribute", ctypes.c_int, 75, 1).value,
        "by_bus": cu.out("cuDeviceGetByPCIBusId", ctypes.c_int, bus.value).value,
        "none": cu.cuDeviceGet(ctypes.byref(ctypes.c_int()), 2)})
"""
    gpu = simulated.machine.gpus()[1]
    assert simulated.python(script).result() == {
        "count": 2,
        "name": "Tesla T4",
        "uuid": gpu.uuid.removeprefix("GPU-").replace("-", ""),
        "total": 2048 * MIB,
        "bus": "0000:20:00.0",
        "major": 7,
        "by_bus": 1,
        "none": 101,
    }


@pytest.mark.parametrize(
    ("variables", "seen"),
    [
        ({}, [0, 1, 2]),
        ({"CUDA_VISIBLE_DEVICES": "2,0"}, [2, 0]),
        ({"CUDA_VISIBLE_DEVICES": "1,7,0"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "{1}"}, [1]),
        ({"NVIDIA_VISIBLE_DEVICES": "2,1"}, [1, 2]),
        ({"NVIDIA_VISIBLE_DEVICES": "{2},{0}"}, [0, 2]),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, [0, 1, 2]),
        ({"NVIDIA_VISIBLE_DEVICES": "void"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "none"}, []),
        ({"NVIDIA_VISIBLE_DEVICES": "1,2", "CUDA_VISIBLE_DEVICES": "1"}, [2]),
    ],
)
def test_variables_choose_the_devices(simulate, variables: dict[str, str], seen: list[int]) -> None:
    simulated = simulate(gpus=3)
    uuids = [gpu.uuid for gpu in simulated.machine.gpus()]
    given = {name: value.format(*uuids) for name, value in variables.items()}
    script = """
found = []
if cu.cuInit(0) == SUCCESS:
    for device in range(cu.out("cuDeviceGetCount", ctypes.c_int).value):
        uuid = ctypes.create_string_buffer(16)
        cu.ok("cuDeviceGetUuid_v2", uuid, device)
        found.append(uuid.raw.hex())
result(found)
"""
    found = simulated.python(script, **given).result()
    assert found == [uuids[gpu].removeprefix("GPU-").replace("-", "") for gpu in seen]


@pytest.mark.misuses("cuInit: in a forked child", "cuCtxSynchronize: in a forked child")
def test_an_initialised_parents_child_is_not_initialised(simulated: Simulated) -> None:
    script = """
cu.start()
pid = os.fork()
if pid == 0:
    os._exit(10 * (cu.cuInit(0) == NOT_INITIALIZED) + (cu.cuCtxSynchronize() == NOT_INITIALIZED))
_, status = os.waitpid(pid, 0)
result([os.waitstatus_to_exitcode(status), cu.cuCtxSynchronize()])
"""
    assert simulated.python(script).result() == [11, 0]


def test_a_child_forked_before_init_is_a_process_of_its_own(simulated: Simulated) -> None:
    script = """
pid = os.fork()
cu.start()
cu.launch(cu.function(), 2_000_000)
cu.ok("cuCtxSynchronize")
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
result(True)
"""
    assert simulated.python(script).result()
    assert [each.executed_ns[0] for each in simulated.machine.processes()] == [2_000_000, 2_000_000]


@pytest.mark.misuses("cuCtxSetCurrent: destroyed context")
def test_the_context_stack_is_each_threads_own(simulated: Simulated) -> None:
    script = """
import threading
first = cu.start()
second = cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 1)
device = cu.out("cuCtxGetDevice", ctypes.c_int).value
def other():
    found.append(cu.out("cuCtxGetCurrent", ctypes.c_void_p).value)
found = []
thread = threading.Thread(target=other)
thread.start()
thread.join()
popped = cu.out("cuCtxPopCurrent_v2", ctypes.c_void_p).value
current = cu.out("cuCtxGetCurrent", ctypes.c_void_p).value
cu.ok("cuCtxPushCurrent_v2", second)
cu.ok("cuCtxDestroy_v2", second)
after = cu.out("cuCtxGetCurrent", ctypes.c_void_p).value
result([device, found, popped == second.value, current == first.value, after == first.value,
        cu.cuCtxSetCurrent(second), cu.cuCtxDestroy_v2(first)])
"""
    assert simulated.python(script).result() == [1, [None], True, True, True, 709, 201]


@pytest.mark.misuses("cuCtxSynchronize: destroyed context")
def test_the_primary_context_lives_while_it_is_retained(simulated: Simulated) -> None:
    script = """
def state():
    flags, active = ctypes.c_uint(), ctypes.c_int()
    cu.ok("cuDevicePrimaryCtxGetState", 0, ctypes.byref(flags), ctypes.byref(active))
    return active.value
cu.ok("cuInit", 0)
states = [state()]
context = cu.start()
cu.start()
states.append(state())
cu.ok("cuDevicePrimaryCtxRelease_v2", 0)
states.append(state())
cu.ok("cuDevicePrimaryCtxRelease_v2", 0)
states.append(state())
result([states, cu.cuCtxSynchronize(), cu.cuDevicePrimaryCtxRelease_v2(0), cu.cuDevicePrimaryCtxReset_v2(0)])
"""
    assert simulated.python(script).result() == [[0, 1, 1, 0], 709, 201, 0]


def test_errors_have_names_and_texts(simulated: Simulated) -> None:
    script = """
found = []
for code in (0, 2, 100, 600, 999):
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    cu.ok("cuGetErrorName", code, ctypes.byref(name))
    cu.ok("cuGetErrorString", code, ctypes.byref(text))
    found.append([name.value.decode(), text.value.decode()])
result([found, cu.cuGetErrorName(12345, ctypes.byref(ctypes.c_char_p()))])
"""
    assert simulated.python(script).result() == [
        [
            ["CUDA_SUCCESS", "no error"],
            ["CUDA_ERROR_OUT_OF_MEMORY", "out of memory"],
            ["CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"],
            ["CUDA_ERROR_NOT_READY", "device not ready"],
            ["CUDA_ERROR_UNKNOWN", "unknown error"],
        ],
        1,
    ]


KIB = 1024


@pytest.mark.parametrize(
    ("model", "shared", "reserved", "blocks", "ratio"),
    [
        ("v100", 96 * KIB, 0, 32, 2),
        ("t4", 64 * KIB, 0, 16, 32),
        ("a100", 164 * KIB, KIB, 32, 2),
        ("a10", 100 * KIB, KIB, 16, 32),
        ("orin", 164 * KIB, KIB, 16, 32),
        ("l4", 100 * KIB, KIB, 24, 32),
        ("h100", 228 * KIB, KIB, 32, 2),
        ("gb10", 100 * KIB, KIB, 24, 32),
    ],
)
def test_a_multiprocessor_has_what_its_compute_capability_says(
    simulate: Callable[..., Simulated], model: str, shared: int, reserved: int, blocks: int, ratio: int
) -> None:
    """CUDA C++ Programming Guide, technical specifications per compute capability."""
    script = """
cu.start()
# Shared memory of a multiprocessor, kept of each block, most of a block; resident blocks; single to double precision
found = [cu.out("cuDeviceGetAttribute", ctypes.c_int, attribute, 0).value for attribute in (81, 111, 97, 106, 87)]
function = cu.function()
set_most = [cu.cuFuncSetAttribute(function, 8, found[2] + more) for more in (0, 1)]
result([found, set_most])
"""
    found, set_most = simulate(gpus=1, model=model).python(script).result()
    assert found == [shared, reserved, shared - reserved, blocks, ratio]
    assert set_most == [0, 1]


def test_textures_have_the_extents_that_the_guide_gives(simulate: Callable[..., Simulated]) -> None:
    """And from 8.0 on a part of the cache can be set aside; 44 and 69 are of no use any more."""
    script = """
cu.start()
extents = [*range(21, 30), 42, 43, *range(45, 50), *range(52, 69), *range(70, 75), 77]
result([[cu.out("cuDeviceGetAttribute", ctypes.c_int, each, 0).value for each in (*extents, 108, 109, 38)]])
"""
    for model, parts in (("t4", 0), ("a100", 3)):
        ((*extents, persisting, window, cache),) = simulate(gpus=1, model=model).python(script).result()
        assert min(extents) == 2046
        assert max(extents) == 2097120
        assert extents[:6] == [131072, 131072, 65536, 16384, 16384, 16384]
        assert (persisting, window > 0) == (cache // 4 * parts, parts > 0)
