"""Waits for values in memory, and writes of them, in a stream's order."""

from tests.kit.machine.simulated import Simulated

TYPES = """
u32, u64, size = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
cu.start()
flags = cu.out("cuMemAllocHost_v2", ctypes.c_void_p, size(64)).value
ctypes.memset(flags, 0, 64)
def word(index):
    return ctypes.cast(flags + 8 * index, ctypes.POINTER(u64))
def at(index):
    return u64(flags + 8 * index)
function = cu.function()
"""


def test_a_stream_waits_until_the_host_writes(simulated: Simulated) -> None:
    script = """
stream = cu.stream()
tries = [(0, 5, 5), (0, 5, 6), (1, 5, 5), (2, 6, 2), (3, 0xfffffffe, 0)]
seen = []
for compare, value, written in tries:
    word(0)[0] = 0xffffffff if compare == 3 else 0
    cu.ok("cuStreamWaitValue32_v2", stream, at(0), u32(value), compare)
    held = cu.cuStreamQuery(stream)
    word(0)[0] = written
    cu.ok("cuStreamSynchronize", stream)
    seen.append(held)
word(0)[0] = 0
cu.ok("cuStreamWaitValue64", stream, at(0), u64(1 << 40), 0)
seen.append(cu.cuStreamQuery(stream))
word(0)[0] = (1 << 40) + 1
cu.ok("cuStreamSynchronize", stream)
refused = [cu.cuStreamWaitValue32(stream, u64(flags + 1), u32(0), 0),
           cu.cuStreamWaitValue32(stream, at(0), u32(0), 4), cu.cuStreamWaitValue32(stream, u64(4096), u32(0), 0),
           cu.cuStreamWriteValue64(stream, u64(flags + 4), u64(0), 0)]
result([seen, refused])
"""
    assert simulated.python(TYPES + script).result() == [[600] * 6, [1, 1, 1, 1]]


def test_a_value_is_written_when_the_stream_comes_to_it(simulated: Simulated) -> None:
    script = """
cu.ok("cuStreamWaitValue32", None, at(0), u32(1), 0)
cu.launch(function, 50_000_000)
cu.ok("cuStreamWriteValue32", None, at(1), u32(9), 0)
early = word(1)[0]
word(0)[0] = 1
while not word(1)[0]:
    pass
result([early, word(1)[0], time.monotonic_ns()])
"""
    early, value, seen_ns = simulated.python(TYPES + script).result()
    assert (early, value) == (0, 9)
    (kernel,) = [each for each in simulated.log() if each.kind == "kernel"]
    assert seen_ns >= kernel.end_ns


def test_one_stream_may_wait_for_what_another_of_the_same_context_writes(simulated: Simulated) -> None:
    script = """
first, second = cu.stream(1), cu.stream(1)
cu.ok("cuStreamWaitValue32", first, at(0), u32(1), 0)
cu.ok("cuStreamWriteValue32", first, at(1), u32(1), 0)
held = word(1)[0]
cu.ok("cuStreamWriteValue32", second, at(0), u32(1), 0)
cu.ok("cuStreamSynchronize", first)
cu.ok("cuStreamSynchronize", second)
result([held, word(1)[0]])
"""
    assert simulated.python(TYPES + script).result() == [0, 1]


def test_several_operations_go_in_one_call_and_in_a_graph(simulated: Simulated) -> None:
    script = """
class Op(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("address", ctypes.c_uint64), ("value", ctypes.c_uint64),
                ("flags", ctypes.c_uint), ("alias", ctypes.c_uint64), ("pad", ctypes.c_uint64)]
stream = cu.stream()
ops = (Op * 4)(Op(2, flags, 3), Op(1, flags, 3, 1), Op(5, flags + 8, 1 << 40), Op(6))
cu.ok("cuStreamBatchMemOp", stream, 4, ops, 0)
cu.ok("cuStreamSynchronize", stream)
seen = [word(0)[0], word(1)[0]]
ops[0].kind = 99
refused = [cu.cuStreamBatchMemOp_v2(stream, 4, ops, 0), cu.cuStreamBatchMemOp(stream, 0, ops, 0)]
cu.ok("cuStreamBeginCapture_v2", stream, 0)
cu.ok("cuStreamWriteValue32_v2", stream, at(2), u32(4), 0)
graph = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream)
node, count = (ctypes.c_void_p * 1)(), size(1)
cu.ok("cuGraphGetNodes", graph, node, ctypes.byref(count))
kind = cu.out_of("cuGraphNodeGetType", ctypes.c_int, ctypes.c_void_p(node[0])).value
ready = cu.out("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, u64(0))
before = word(2)[0]
cu.ok("cuGraphLaunch", ready, stream)
cu.ok("cuStreamSynchronize", stream)
result([seen, refused, kind, before, word(2)[0]])
"""
    assert simulated.python(TYPES + script).result() == [[3, 1 << 40], [1, 1], 12, 0, 4]


def test_a_queue_full_of_host_functions_drains(simulated: Simulated) -> None:
    script = """
calls = []
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: calls.append(1))
for _ in range(1500):
    cu.ok("cuLaunchHostFunc", None, callback, None)
cu.ok("cuCtxSynchronize")
result(len(calls))
"""
    assert simulated.python(TYPES + script).result() == 1500
