"""What graphs allocate when they run."""

from tests.kit.machine.simulated import Simulated

TYPES = """
MIB, size, u64 = 1 << 20, ctypes.c_size_t, ctypes.c_uint64
USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)
class Node(ctypes.Structure):  # CUDA_MEM_ALLOC_NODE_PARAMS
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("win32", ctypes.c_void_p), ("most", ctypes.c_size_t), ("rest", ctypes.c_char * 56),
                ("access", ctypes.c_void_p), ("accesses", ctypes.c_size_t), ("bytes", ctypes.c_size_t),
                ("pointer", ctypes.c_uint64)]
cu.start()
free = cu.memory()[0]
def taken():
    return (free - cu.memory()[0]) // MIB
def mem(attribute):
    return cu.out_of("cuDeviceGetGraphMemAttribute", u64, 0, attribute).value // MIB
def graph():
    return cu.out("cuGraphCreate", ctypes.c_void_p, 0)
def add_alloc(graph, mib):
    node = Node(1, 0, 1, 0, None, 0, b"", None, 0, mib * MIB, 0)
    cu.out("cuGraphAddMemAllocNode", ctypes.c_void_p, graph, None, size(0), ctypes.byref(node))
    return u64(node.pointer)
def add_free(graph, pointer):
    return cu.out("cuGraphAddMemFreeNode", ctypes.c_void_p, graph, None, size(0), pointer)
def instantiate(graph, flags=0):
    return cu.out("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, u64(flags))
"""


def test_memory_is_taken_at_the_first_launch_and_kept_until_it_is_trimmed(simulated: Simulated) -> None:
    script = """
made = graph()
first = add_alloc(made, 10)
add_free(made, first)
add_free(made, add_alloc(made, 6))
seen = [taken()]
ready = instantiate(made)
seen.append(taken())
second = cu.cuGraphInstantiateWithFlags(ctypes.byref(ctypes.c_void_p()), made, u64(0))
for _ in range(3):
    cu.ok("cuGraphLaunch", ready, None)
cu.ok("cuCtxSynchronize")
seen.append(taken())
numbers = [mem(USED), mem(USED_HIGH), mem(RESERVED)]
cu.ok("cuDeviceGraphMemTrim", 0)
seen.append(taken())
cu.ok("cuGraphUpload", ready, None)
seen.append(taken())
cu.ok("cuGraphExecDestroy", ready)
seen.append(taken())
cu.ok("cuDeviceGraphMemTrim", 0)
cu.ok("cuDeviceSetGraphMemAttribute", 0, RESERVED_HIGH, ctypes.byref(u64(0)))
result([seen, second, numbers, taken(), mem(RESERVED_HIGH)])
"""
    assert simulated.python(TYPES + script).result() == [[0, 0, 10, 0, 10, 10], 1, [0, 10, 10], 0, 0]


def test_what_a_run_leaves_allocated_is_freed_before_the_next(simulated: Simulated) -> None:
    script = """
made = graph()
pointer = add_alloc(made, 8)
ready = instantiate(made)
early = cu.cuMemFree_v2(pointer)
cu.ok("cuGraphLaunch", ready, None)
again = cu.cuGraphLaunch(ready, None)
cu.ok("cuMemcpyHtoD_v2", pointer, b"abcd", size(4))
cu.ok("cuMemFreeAsync", pointer, None)
twice = cu.cuMemFreeAsync(pointer, None)
cu.ok("cuGraphLaunch", ready, None)
other = graph()
add_free(other, pointer)
cu.ok("cuGraphLaunch", instantiate(other), None)
used = mem(USED)
cu.ok("cuGraphLaunch", ready, None)
cu.ok("cuGraphExecDestroy", ready)
automatic = instantiate(made, 1)
codes = [cu.cuGraphLaunch(automatic, None) for _ in range(2)]
cu.ok("cuCtxSynchronize")
cu.ok("cuDeviceGraphMemTrim", 0)
result([early, again, twice, used, codes, mem(USED), taken()])
"""
    assert simulated.python(TYPES + script).result() == [1, 1, 1, 0, [0, 0], 8, 8]


def test_captured_allocations_become_nodes(simulated: Simulated) -> None:
    script = """
stream, function = cu.stream(), cu.function()
cu.ok("cuStreamBeginCapture_v2", stream, 0)
pointer = cu.out("cuMemAllocAsync", u64, size(12 * MIB), stream)
cu.ok("cuMemsetD8Async", pointer, 7, size(100), stream)
cu.launch(function, 1_000_000, stream)
plain = cu.cuMemFreeAsync(u64(4096), stream)
cu.ok("cuMemFreeAsync", pointer, stream)
made = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream)
count = size(8)
nodes = (ctypes.c_void_p * 8)()
cu.ok("cuGraphGetNodes", made, nodes, ctypes.byref(count))
kinds = [cu.out_of("cuGraphNodeGetType", ctypes.c_int, ctypes.c_void_p(node)).value for node in nodes[: count.value]]
seen = [taken()]
params = (ctypes.c_uint64 * 3)(1 | 2, 0, 0)
ready = cu.out("cuGraphInstantiateWithParams", ctypes.c_void_p, made, ctypes.byref(params))
seen.append(taken())
cu.ok("cuGraphLaunch", ready, stream)
cu.ok("cuStreamSynchronize", stream)
seen.append(taken())
result([kinds, seen, plain])
"""
    assert simulated.python(TYPES + script).result() == [[10, 2, 0, 11], [0, 12, 12], 1]
    assert [each.kind for each in simulated.log()] == ["set", "kernel"]


def test_too_much_for_a_graph_shows_at_the_launch(simulated: Simulated) -> None:
    script = """
made = graph()
add_free(made, add_alloc(made, 3000))
ready = instantiate(made)
codes = [cu.cuGraphLaunch(ready, None), cu.cuGraphUpload(ready, None), taken()]
cu.ok("cuCtxSynchronize")
result(codes)
"""
    assert simulated.python(TYPES + script).result() == [2, 2, 0]


def test_copies_and_sets_of_a_graph_happen_at_each_launch(simulated: Simulated) -> None:
    script = """
stream, pointer = cu.stream(), cu.alloc(64)
source, back = ctypes.create_string_buffer(b"first", 8), ctypes.create_string_buffer(8)
cu.ok("cuStreamBeginCapture_v2", stream, 0)
cu.ok("cuMemcpyHtoDAsync_v2", pointer, source, size(6), stream)
made = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream)
child = graph()
cu.out("cuGraphAddChildGraphNode", ctypes.c_void_p, child, None, size(0), made)
ready, seen = instantiate(child), []
for text in (b"second", b"third"):
    source.value = text
    cu.ok("cuGraphLaunch", ready, stream)
    cu.ok("cuMemcpyDtoH_v2", back, pointer, size(6))
    seen.append(back.raw[:6].decode().rstrip("\\0"))
result(seen)
"""
    assert simulated.python(TYPES + script).result() == ["second", "third"]


def test_one_call_adds_nodes_of_every_kind(simulated: Simulated) -> None:
    script = """
class Any(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("reserved", ctypes.c_int * 3), ("bytes", ctypes.c_char * 232),
                ("rest", ctypes.c_longlong)]
made = graph()
def add(kind, value=b"", entry="cuGraphAddNode", *edges):
    params = Any(kind)
    ctypes.memmove(ctypes.addressof(params) + 16, bytes(value), len(bytes(value)))
    code = getattr(cu, entry)(ctypes.byref(ctypes.c_void_p()), made, None, *edges, size(0), ctypes.byref(params))
    return code, params
code, params = add(10, Node(1, 0, 1, 0, None, 0, b"", None, 0, 4 * MIB, 0))
pointer = Node.from_buffer_copy(bytes(params)[16:16 + ctypes.sizeof(Node)]).pointer
class Set(ctypes.Structure):
    _fields_ = [("to", u64), ("pitch", size), ("value", ctypes.c_uint), ("element", ctypes.c_uint), ("width", size),
                ("height", size), ("context", ctypes.c_void_p)]
back = ctypes.create_string_buffer(4)
copy = (u64 * 27)()  # CUDA_MEMCPY_NODE_PARAMS: flags, context, a CUDA_MEMCPY3D
copy[2 + 4], copy[2 + 6] = 2, pointer
copy[2 + 15], copy[2 + 16], copy[2 + 22 : 2 + 25] = 1, ctypes.addressof(back), (4, 1, 1)
codes = [code, add(2, Set(pointer, 0, 5, 1, 100, 1, None))[0], add(1, copy)[0], add(5)[0],
         add(5, b"", "cuGraphAddNode_v2", None)[0],
         add(11, u64(pointer))[0], add(11, u64(4096))[0], add(13)[0]]
cu.ok("cuGraphLaunch", instantiate(made), None)
cu.ok("cuCtxSynchronize")
result([codes, taken(), mem(USED_HIGH), list(back.raw)])
"""
    assert simulated.python(TYPES + script).result() == [[0, 0, 0, 0, 0, 0, 1, 801], 4, 4, [5, 5, 5, 5]]
    assert [each.kind for each in simulated.log()] == ["set", "copy"]
