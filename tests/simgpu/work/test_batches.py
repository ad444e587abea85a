"""Copies with attributes, many in a call; prefetches; forms of calls from before CUDA 3.2; captures into a graph."""

import pytest

from tests.kit.machine.simulated import Simulated

TYPES = """
size, u64 = ctypes.c_size_t, ctypes.c_uint64
class Attributes(ctypes.Structure):
    _fields_ = [("order", ctypes.c_int), ("from_type", ctypes.c_int), ("from_id", ctypes.c_int),
                ("to_type", ctypes.c_int), ("to_id", ctypes.c_int), ("flags", ctypes.c_uint)]
class Pointer(ctypes.Structure):
    _fields_ = [("at", u64), ("row", size), ("layer", size), ("hint", ctypes.c_int * 2)]
class Part(ctypes.Structure):
    _fields_ = [("array", ctypes.c_void_p), ("offset", size * 3)]
class Either(ctypes.Union):
    _fields_ = [("pointer", Pointer), ("array", Part)]
class Operand(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("op", Either)]
class Op(ctypes.Structure):
    _fields_ = [("src", Operand), ("dst", Operand), ("extent", size * 3), ("order", ctypes.c_int),
                ("flags", ctypes.c_uint)]
def text_at(pointer, length):
    back = ctypes.create_string_buffer(length)
    cu.ok("cuMemcpyDtoH_v2", back, pointer, size(length))
    return back.raw.decode()
cu.start()
stream = cu.stream()
"""


def test_many_copies_go_in_one_call(simulated: Simulated) -> None:
    script = """
source = ctypes.create_string_buffer(b"abcdefgh", 8)
target, failed = cu.alloc(8), size(7)
where = (u64 * 2)(target.value + 4, target.value)
whence = (u64 * 2)(ctypes.addressof(source), ctypes.addressof(source) + 4)
sizes, attributes, indices = (size * 2)(4, 4), (Attributes * 1)(Attributes(1)), (size * 1)(0)
def batch(entry, stream, *fail, count=1):
    return getattr(cu, entry)(where, whence, sizes, size(2), attributes, indices, size(count), *fail, stream)
codes = [batch("cuMemcpyBatchAsync", stream, ctypes.byref(failed)), failed.value == size(-1).value]
seen = text_at(target, 8)
codes += [batch("cuMemcpyBatchAsync", None, ctypes.byref(failed)), batch("cuMemcpyBatchAsync_ptsz", None, None),
          batch("cuMemcpyBatchAsync_v2", stream), batch("cuMemcpyBatchAsync_v2", stream, count=0)]
sizes[1] = 0
codes += [batch("cuMemcpyBatchAsync", stream, ctypes.byref(failed)), failed.value]
attributes[0].order = 0
codes += [cu.cuMemcpyWithAttributesAsync(target, whence[0], size(4), attributes, stream)]
attributes[0].order = 2
codes += [cu.cuMemcpyWithAttributesAsync(target, u64(whence[0]), size(4), attributes, stream)]
result([codes, seen, text_at(target, 4)])
"""
    assert simulated.python(TYPES + script).result() == [[0, True, 1, 0, 0, 1, 1, 1, 1, 0], "efghabcd", "abcd"]


def test_boxes_go_in_one_call(simulated: Simulated) -> None:
    script = """
class Plane(ctypes.Structure):
    _fields_ = [("width", size), ("height", size), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]
array = cu.out("cuArrayCreate_v2", ctypes.c_void_p, ctypes.byref(Plane(4, 4, 2, 1)))  # of two bytes each
source = ctypes.create_string_buffer(b"aabbccddeeffgghh", 16)
target, failed = cu.alloc(16), size(7)
def pointer(at, row=0):
    return Operand(1, Either(pointer=Pointer(at, row)))
def part(x, y):
    return Operand(2, Either(array=Part(array.value, (x, y, 0))))
ops = (Op * 2)(Op(pointer(ctypes.addressof(source)), part(0, 0), (4, 2, 1), 1),
               Op(part(1, 0), pointer(target.value), (2, 2, 1), 1))
codes = [cu.cuMemcpy3DBatchAsync(size(2), ops, ctypes.byref(failed), u64(0), stream), failed.value == size(-1).value]
seen = text_at(target, 8)
ops[1].src.op.array.offset[0] = 3
codes += [cu.cuMemcpy3DBatchAsync(size(2), ops, ctypes.byref(failed), u64(0), stream), failed.value,
          cu.cuMemcpy3DBatchAsync_v2(size(1), ops, u64(0), stream),
          cu.cuMemcpy3DBatchAsync_v2(size(1), ops, u64(0), None),
          cu.cuMemcpy3DWithAttributesAsync(ops, u64(0), stream), cu.cuMemcpy3DWithAttributesAsync(ops, u64(1), stream)]
result([codes, seen])
"""
    assert simulated.python(TYPES + script).result() == [[0, True, 1, 1, 0, 1, 0, 1], "bbccffgg"]


def test_a_prefetch_takes_time_on_the_device(simulated: Simulated) -> None:
    script = """
managed, plain = cu.out("cuMemAllocManaged", u64, size(12 << 20), 1), cu.alloc(4096)
location = u64(1)  # device 0
host, nowhere = u64(2), u64(0)
codes = [cu.cuMemPrefetchAsync(managed, size(12 << 20), 0, stream),
         cu.cuMemPrefetchAsync(managed, size(4096), -1, stream),
         cu.cuMemPrefetchAsync(managed, size(4096), 2, stream), cu.cuMemPrefetchAsync(plain, size(4096), 0, stream),
         cu.cuMemPrefetchAsync_v2(managed, size(4096), location, 0, stream),
         cu.cuMemPrefetchAsync_v2(managed, size(4096), nowhere, 0, stream),
         cu.cuMemAdvise(managed, size(4096), 1, 0), cu.cuMemAdvise(managed, size(4096), 3, -1),
         cu.cuMemAdvise(managed, size(4096), 3, 5), cu.cuMemAdvise(plain, size(1), 1, 0),
         cu.cuMemAdvise_v2(managed, size(4096), 5, host), cu.cuMemAdvise_v2(managed, size(4096), 9, host)]
pointers, sizes, indices = (u64 * 1)(managed.value), (size * 1)(4096), (size * 1)(0)
codes += [cu.cuMemPrefetchBatchAsync(pointers, sizes, size(1), ctypes.byref(location), indices, size(1), u64(0),
                                     stream),
          cu.cuMemDiscardBatchAsync(pointers, sizes, size(1), u64(0), stream),
          cu.cuMemDiscardAndPrefetchBatchAsync(pointers, sizes, size(1), None, None, size(0), u64(0), stream)]
cu.ok("cuCtxSynchronize")
result(codes)
"""
    assert simulated.python(TYPES + script).result() == [0, 0, 101, 1, 0, 1, 0, 0, 101, 1, 0, 1, 0, 0, 1]
    lengths = [each.end_ns - each.begin_ns for each in simulated.log() if each.kind == "copy"]
    assert lengths == [1000 + (12 << 20) // 12, 1341, 1341, 1341, 1000]


@pytest.mark.misuses("cuCtxSynchronize_v2: destroyed context", "cuMemFree_v2: unknown address")
def test_the_oldest_forms_have_addresses_of_32_bits(simulated: Simulated) -> None:
    script = """
u32 = ctypes.c_uint
context = cu.out("cuCtxCreate", ctypes.c_void_p, 0, 0)
free, total = u32(), u32()
cu.ok("cuMemGetInfo", ctypes.byref(free), ctypes.byref(total))
pointer = cu.out("cuMemAlloc", u32, 1 << 20)
pitch, second = u32(), u32()
cu.ok("cuMemAllocPitch", ctypes.byref(second), ctypes.byref(pitch), 100, 10, 4)
cu.ok("cuMemcpyHtoD", pointer, b"abcdefgh", 8)
cu.ok("cuMemcpyDtoD", second, pointer, 8)
cu.ok("cuMemsetD16", second, 0x7878, 2)
back = ctypes.create_string_buffer(8)
cu.ok("cuMemcpyDtoH", back, second, 8)
base, length = u32(), u32()
cu.ok("cuMemGetAddressRange", ctypes.byref(base), ctypes.byref(length), u32(pointer.value + 5))
wide = cu.alloc(64)
used = cu.memory()
codes = [cu.cuMemFree(second), cu.cuMemFree(second), cu.cuMemFree(pointer)]
attached = cu.out("cuCtxAttach", ctypes.c_void_p, 0)
codes += [cu.cuCtxDestroy(context), cu.cuCtxDetach(attached), cu.cuCtxDetach(context), cu.cuCtxSynchronize_v2(context)]
result([total.value, used[1] - used[0] - 2 * (256 << 20), back.raw.decode(), base.value == pointer.value, length.value,
        pitch.value, codes])
"""
    expected = [2048 << 20, (1 << 20) + 5120 + 512, "xxxxefgh", True, 1 << 20, 512, [0, 1, 0, 201, 0, 0, 709]]
    assert simulated.python(TYPES + script).result() == expected


def test_who_asks_for_per_thread_forms_gets_no_older_one(simulated: Simulated) -> None:
    """As driver 535 answers."""
    script = """
def find(name, version, flags=0):
    place, status = ctypes.c_void_p(), ctypes.c_int()
    cu.ok("cuGetProcAddress_v2", name, ctypes.byref(place), version, u64(flags), ctypes.byref(status))
    forms = ("", "_v2", "_v2_ptds", "_v2_ptsz", "_ptsz")
    known = {ctypes.cast(getattr(cu.library, name.decode() + form), ctypes.c_void_p).value: form
             for form in forms if hasattr(cu.library, name.decode() + form)}
    return [known.get(place.value), status.value]
result([find(b"cuMemcpyHtoD", 3010), find(b"cuMemcpyHtoD", 3010, 2), find(b"cuMemcpyHtoD", 3020, 2),
        find(b"cuMemcpyHtoD", 7000, 2), find(b"cuMemAlloc", 3010, 2), find(b"cuStreamWaitValue32", 11060, 2),
        find(b"cuStreamWaitValue32", 11070, 2), find(b"cuMemcpyBatchAsync", 12070), find(b"cuMemcpyBatchAsync", 13000)])
"""
    assert simulated.python(TYPES + script).result() == [
        ["", 0],
        [None, 2],
        [None, 2],
        ["_v2_ptds", 0],
        ["", 0],
        ["_ptsz", 0],
        ["_v2_ptsz", 0],
        [None, 1],
        [None, 1],
    ]


def test_a_capture_goes_on_in_a_graph_that_is_there(simulated: Simulated) -> None:
    script = """
function, graph = cu.function(), cu.out("cuGraphCreate", ctypes.c_void_p, 0)
node = cu.out("cuGraphAddEmptyNode", ctypes.c_void_p, graph, None, size(0))
cu.ok("cuStreamBeginCaptureToGraph", stream, graph, ctypes.byref(node), None, size(1), 0)
cu.launch(function, 1_000_000, stream)
same = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream).value == graph.value
cu.ok("cuStreamBeginCaptureToGraph", stream, graph, None, None, size(0), 0)
broken = [cu.cuStreamSynchronize(stream), cu.cuStreamEndCapture(stream, ctypes.byref(ctypes.c_void_p()))]
count = size()
cu.ok("cuGraphGetNodes", graph, None, ctypes.byref(count))
ready = cu.out("cuGraphInstantiate_v2", ctypes.c_void_p, graph, None, None, size(0))
cu.ok("cuGraphLaunch", ready, stream)
cu.ok("cuStreamSynchronize", stream)
result([same, broken, count.value])
"""
    assert simulated.python(TYPES + script).result() == [True, [900, 901], 2]
    assert simulated.machine.gpus()[0].busy_ns == 1_000_000
