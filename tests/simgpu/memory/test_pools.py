"""Memory pools: what they hold, what of it is in use, and when they give it back."""

from collections.abc import Callable

import pytest

from tests.kit.machine.simulated import MIB, Simulated

TYPES = """
MIB, size, u64 = 1 << 20, ctypes.c_size_t, ctypes.c_uint64
THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
class Props(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("win32", ctypes.c_void_p), ("most", ctypes.c_size_t), ("rest", ctypes.c_char * 56)]
def make(device=0, handles=0, most=0):
    return cu.out("cuMemPoolCreate", ctypes.c_void_p, ctypes.byref(Props(1, handles, 1, device, None, most)))
def get(pool, attribute):
    return cu.out_of("cuMemPoolGetAttribute", u64, pool, attribute).value
def put(pool, attribute, value):
    return cu.cuMemPoolSetAttribute(pool, attribute, ctypes.byref(u64(value)))
def alloc(mib, stream=None):
    return cu.out("cuMemAllocAsync", u64, size(mib * MIB), stream)
def alloc_from(pool, mib, stream=None):
    return cu.out("cuMemAllocFromPoolAsync", u64, size(mib * MIB), pool, stream)
cu.start()
free = cu.memory()[0]
def taken():
    return (free - cu.memory()[0]) // MIB
default = cu.out("cuDeviceGetDefaultMemPool", ctypes.c_void_p, 0)
"""


def test_a_pool_gives_back_at_the_next_synchronisation_what_is_free(simulated: Simulated) -> None:
    script = """
function = cu.function()
pointers = [alloc(10), alloc(30)]
seen = [[taken(), get(default, USED) // MIB, get(default, RESERVED) // MIB]]
cu.launch(function, 20_000_000)
cu.ok("cuMemFreeAsync", pointers[1], None)
seen.append([taken(), get(default, USED) // MIB])
event = cu.event()
cu.ok("cuEventRecord", event, None)
cu.ok("cuEventSynchronize", event)
seen.append([taken(), get(default, RESERVED) // MIB])
cu.ok("cuMemFreeAsync", pointers[0], None)
cu.ok("cuStreamSynchronize", None)
seen.append([taken(), get(default, USED), get(default, USED_HIGH) // MIB, get(default, RESERVED_HIGH) // MIB])
codes = [put(default, USED_HIGH, 0), put(default, USED_HIGH, 1), put(default, RESERVED, 0)]
result([seen, codes, get(default, USED_HIGH)])
"""
    assert simulated.python(TYPES + script).result() == [
        [[64, 40, 64], [64, 10], [10, 10], [0, 0, 40, 64]],
        [0, 1, 1],
        0,
    ]


@pytest.mark.misuses("cuMemPoolDestroy: destroyed pool", "cuMemPoolTrimTo: destroyed pool")
def test_a_pool_keeps_up_to_its_threshold_and_is_trimmed(simulated: Simulated) -> None:
    script = """
pool = make()
put(pool, THRESHOLD, 48 * MIB)
cu.ok("cuDeviceSetMemPool", 0, pool)
current = cu.out("cuDeviceGetMemPool", ctypes.c_void_p, 0).value == pool.value
pointer = alloc(100)
seen = [taken()]
cu.ok("cuMemFreeAsync", pointer, None)
cu.ok("cuCtxSynchronize")
seen.append(taken())
pointer = alloc(20)
seen.append(taken())
cu.ok("cuMemPoolTrimTo", pool, size(30 * MIB))
seen.append(taken())
cu.ok("cuMemPoolTrimTo", pool, size(0))
seen.append(taken())
cu.ok("cuMemPoolDestroy", pool)
seen.append(taken())
back = cu.out("cuDeviceGetMemPool", ctypes.c_void_p, 0).value == default.value
cu.ok("cuMemFree_v2", pointer)
result([current, seen, taken(), back, cu.cuMemPoolDestroy(pool), cu.cuMemPoolDestroy(default),
        cu.cuMemPoolTrimTo(pool, size(0))])
"""
    assert simulated.python(TYPES + script).result() == [True, [128, 48, 48, 30, 20, 20], 0, True, 1, 1, 1]


def test_a_pool_takes_smaller_pieces_near_the_end_and_no_more_than_its_own_limit(
    simulate: Callable[..., Simulated],
) -> None:
    simulated = simulate(gpus=1, memory_mib=256 + 50)
    script = """
limited = make(most=8 * MIB)
place = u64()
codes = [cu.cuMemAllocFromPoolAsync(ctypes.byref(place), size(9 * MIB), limited, None)]
first = alloc_from(limited, 8)
codes.append(cu.cuMemAllocFromPoolAsync(ctypes.byref(place), size(1), limited, None))
cu.ok("cuMemFreeAsync", first, None)
cu.ok("cuCtxSynchronize")
alloc(33)
seen = [taken()]
codes.append(cu.cuMemAllocAsync(ctypes.byref(place), size(20 * MIB), None))
alloc(17)
seen.append(taken())
codes.append(cu.cuMemAllocAsync(ctypes.byref(place), size(1), None))
result([codes, seen])
"""
    assert simulated.python(TYPES + script).result() == [[2, 2, 2, 2], [34, 50]]


def test_a_pool_ends_with_the_primary_context(simulated: Simulated) -> None:
    script = """
put(default, THRESHOLD, 1 << 40)
alloc(10)
cu.ok("cuDevicePrimaryCtxRelease_v2", 0)
cu.start(1)
cu.ok("cuInit", 0)
print("over", flush=True)
time.sleep(60)
"""
    program = simulated.python(TYPES + script)
    assert program.line() == "over"
    assert [gpu.used_bytes for gpu in simulated.machine.gpus()] == [0, 256 * MIB]


def test_what_queued_work_may_still_use_is_not_given_back(simulated: Simulated) -> None:
    script = """
function, event, stream = cu.function(), cu.event(), cu.stream(1)
flag = cu.out("cuMemAllocHost_v2", ctypes.c_void_p, size(8)).value
ctypes.memset(flag, 0, 8)
pointer = alloc(10, stream)
cu.ok("cuEventRecord", event, stream)
cu.ok("cuStreamWaitValue32_v2", stream, u64(flag), ctypes.c_uint32(1), 0)
cu.launch(function, 1_000_000, stream)
cu.ok("cuMemFreeAsync", pointer, stream)
cu.ok("cuEventSynchronize", event)
running = cu.cuStreamQuery(stream)
seen = [taken()]
ctypes.c_uint32.from_address(flag).value = 1
cu.ok("cuStreamSynchronize", stream)
result([running, seen, taken()])
"""
    assert simulated.python(TYPES + script).result() == [600, [32], 0]
