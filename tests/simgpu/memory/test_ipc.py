"""Memory, events and semaphores that processes share."""

import json

from tests.kit.machine.simulated import MIB, MS, Simulated

TYPES = """
MIB, size, u64 = 1 << 20, ctypes.c_size_t, ctypes.c_uint64
class Handle(ctypes.Structure):  # passed by value
    _fields_ = [("bytes", ctypes.c_char * 64)]
    @classmethod
    def given(cls):
        return cls.from_buffer_copy(bytes.fromhex(os.environ["HANDLE"]))
def text_at(pointer, length=5):
    back = ctypes.create_string_buffer(length)
    cu.ok("cuMemcpyDtoH_v2", back, pointer, size(length))
    return back.raw.decode()
def hold():
    time.sleep(60)
cu.start()
"""


def test_an_allocation_is_opened_by_another_process(simulated: Simulated) -> None:
    exporter = simulated.python(
        TYPES
        + """
cu.alloc(MIB)
pointer = cu.alloc(10 * MIB)
inside = u64(pointer.value + 5 * MIB)
cu.ok("cuMemcpyHtoD_v2", inside, b"hello", size(5))
handle = Handle()
managed = cu.out("cuMemAllocManaged", u64, size(MIB), 1)
pooled = cu.out("cuMemAllocAsync", u64, size(MIB), None)
refused = [cu.cuIpcGetMemHandle(ctypes.byref(handle), each) for each in (managed, pooled, u64(4096))]
cu.ok("cuIpcGetMemHandle", ctypes.byref(handle), inside)
place = u64()
own = cu.cuIpcOpenMemHandle_v2(ctypes.byref(place), handle, 1)
print(json.dumps([bytes(handle).hex(), refused, own]), flush=True)
while text_at(inside) != "there":
    time.sleep(0.01)
result("seen")
""",
        SIMGPU_TAG="exporter",
    )
    handle, refused, own = json.loads(exporter.line())
    assert (refused, own) == ([1, 1, 1], 201)
    before = simulated.process("exporter").memory_bytes
    importer = simulated.python(
        TYPES
        + """
place = u64()
codes = [cu.cuIpcOpenMemHandle_v2(ctypes.byref(place), Handle.given(), 0)]
first = cu.out("cuIpcOpenMemHandle_v2", u64, Handle.given(), 1)
second = cu.out("cuIpcOpenMemHandle", u64, Handle.given(), 1)
seen = text_at(u64(first.value + 5 * MIB))
cu.ok("cuMemcpyHtoD_v2", u64(first.value + 5 * MIB), b"there", size(5))
codes += [cu.cuMemFree_v2(first), cu.cuIpcCloseMemHandle(first)]
still = text_at(u64(first.value + 5 * MIB))
taken = cu.memory()[1] - cu.memory()[0]
codes += [cu.cuIpcCloseMemHandle(first), cu.cuIpcCloseMemHandle(first),
          cu.cuMemcpyHtoD_v2(first, b"x", size(1))]
result([codes, first.value == second.value, seen, still, taken])
""",
        SIMGPU_TAG="importer",
        HANDLE=handle,
    )
    codes, same, seen, still, taken = importer.result()
    assert (codes, same, seen, still) == ([1, 1, 0, 0, 1, 1], True, "hello", "there")
    # It counts once, where it was made.
    assert taken == before[0] + 256 * MIB
    assert exporter.result() == "seen"


def test_a_handle_of_a_dead_process_cannot_be_opened(simulated: Simulated) -> None:
    exporter = simulated.python(
        TYPES
        + """
handle = Handle()
cu.ok("cuIpcGetMemHandle", ctypes.byref(handle), cu.alloc(MIB))
result(bytes(handle).hex())
"""
    )
    importer = simulated.python(
        TYPES + "result(cu.cuIpcOpenMemHandle_v2(ctypes.byref(u64()), Handle.given(), 1))", HANDLE=exporter.result()
    )
    assert importer.result() == 205


def test_an_event_is_waited_for_by_another_process(simulated: Simulated) -> None:
    exporter = simulated.python(
        TYPES
        + """
event, handle = cu.event(2 | 4), Handle()
plain = cu.cuIpcGetEventHandle(ctypes.byref(handle), cu.event(2))
cu.ok("cuIpcGetEventHandle", ctypes.byref(handle), event)
function = cu.function()
cu.launch(function, 300_000_000)
cu.ok("cuEventRecord", event, None)
cu.launch(function, 1)
print(bytes(handle).hex(), plain, flush=True)
hold()
""",
        SIMGPU_TAG="exporter",
    )
    handle, plain = exporter.line().split()
    assert plain == "1"
    importer = simulated.python(
        TYPES
        + """
event = cu.out("cuIpcOpenEventHandle", ctypes.c_void_p, Handle.given())
waiting = [cu.cuEventQuery(event)]
cu.ok("cuEventSynchronize", event)
end = time.monotonic_ns()
waiting.append(cu.cuEventQuery(event))
stream = cu.stream()
cu.ok("cuEventRecord", event, stream)
cu.ok("cuStreamWaitEvent", stream, event, 0)
cu.ok("cuStreamSynchronize", stream)
cu.ok("cuEventDestroy_v2", event)
result([waiting, end])
""",
        HANDLE=handle,
    )
    waiting, end_ns = importer.result()
    assert waiting in ([600, 0], [0, 0])
    long = next(each for each in simulated.log() if each.end_ns - each.begin_ns == 300 * MS)
    assert end_ns >= long.end_ns
    exporter.kill()


def test_a_pools_memory_is_opened_by_another_process(simulated: Simulated) -> None:
    path = str(simulated.directory / "socket")
    exporter = simulated.python(
        TYPES
        + f"""
props = (ctypes.c_uint64 * 11)(1 | 1 << 32, 1, 0, 0)
pool = cu.out("cuMemPoolCreate", ctypes.c_void_p, props)
fd = ctypes.c_int()
default = cu.out("cuDeviceGetDefaultMemPool", ctypes.c_void_p, 0)
refused = cu.cuMemPoolExportToShareableHandle(ctypes.byref(fd), default, 1, u64(0))
cu.ok("cuMemPoolExportToShareableHandle", ctypes.byref(fd), pool, 1, u64(0))
pointer = cu.out("cuMemAllocFromPoolAsync", u64, size(MIB), pool, None)
cu.ok("cuMemcpyHtoD_v2", pointer, b"hello", size(5))
data = Handle()
cu.ok("cuMemPoolExportPointer", ctypes.byref(data), pointer)
print(bytes(data).hex(), refused, flush=True)
give({path!r}, fd.value)
hold()
""",
        SIMGPU_TAG="exporter",
    )
    handle, refused = exporter.line().split()
    assert refused == "1"
    assert exporter.line() == "ready"
    importer = simulated.python(
        TYPES
        + f"""
fd = take({path!r})
pool = cu.out("cuMemPoolImportFromShareableHandle", ctypes.c_void_p, ctypes.c_void_p(fd), 1, u64(0))
os.close(fd)
data, place = Handle.given(), u64()
pointer = cu.out("cuMemPoolImportPointer", u64, pool, ctypes.byref(data))
seen = text_at(pointer)
refused = [cu.cuMemAllocFromPoolAsync(ctypes.byref(place), size(1), pool, None), cu.cuDeviceSetMemPool(0, pool)]
data.bytes = b"x"
refused.append(cu.cuMemPoolImportPointer(ctypes.byref(place), pool, ctypes.byref(data)))
cu.ok("cuMemFree_v2", pointer)
cu.ok("cuMemPoolDestroy", pool)
result([seen, refused])
""",
        SIMGPU_TAG="importer",
        HANDLE=handle,
    )
    assert importer.result() == ["hello", [1, 1, 1]]
    assert simulated.process("exporter").memory_bytes[0] == (256 + 32) * MIB
    exporter.kill()


def test_imported_external_memory_is_the_exporters(simulated: Simulated) -> None:
    script = """
class Buffer(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("size", ctypes.c_uint64), ("flags", ctypes.c_uint),
                ("rest", ctypes.c_uint * 16)]
def description(fd, bytes_wanted, kind=1):  # CUDA_EXTERNAL_MEMORY_HANDLE_DESC
    raw = bytearray(104)
    raw[0:4], raw[8:12] = kind.to_bytes(4, "little"), fd.to_bytes(4, "little")
    raw[24:32] = bytes_wanted.to_bytes(8, "little")
    return (ctypes.c_char * 104).from_buffer(raw)
before = cu.memory()[0]
prop = (ctypes.c_uint64 * 4)(1 | 1 << 32, 1, 0, 0)
handle = cu.out("cuMemCreate", u64, size(4 * MIB), prop, u64(0))
fd = ctypes.c_int()
cu.ok("cuMemExportToShareableHandle", ctypes.byref(fd), handle, 1, u64(0))
place = ctypes.c_void_p()
none = os.memfd_create("none")
codes = [cu.cuImportExternalMemory(ctypes.byref(place), description(none, 4 * MIB)),
         cu.cuImportExternalMemory(ctypes.byref(place), description(fd.value, 5 * MIB)),
         cu.cuImportExternalMemory(ctypes.byref(place), description(fd.value, 4 * MIB, kind=2))]
memory = cu.out("cuImportExternalMemory", ctypes.c_void_p, description(fd.value, 4 * MIB))
pointer = cu.out("cuExternalMemoryGetMappedBuffer", u64, memory, ctypes.byref(Buffer(MIB, 3 * MIB)))
again = cu.out("cuExternalMemoryGetMappedBuffer", u64, memory, ctypes.byref(Buffer(0, 4 * MIB)))
codes.append(cu.cuExternalMemoryGetMappedBuffer(ctypes.byref(u64()), memory, ctypes.byref(Buffer(MIB, 4 * MIB))))
cu.ok("cuMemcpyHtoD_v2", pointer, b"hello", size(5))
seen = text_at(u64(again.value + MIB))
cu.ok("cuMemRelease", handle)
cu.ok("cuDestroyExternalMemory", memory)
cu.ok("cuMemFree_v2", again)
taken = [before - cu.memory()[0]]
cu.ok("cuMemFree_v2", pointer)
taken.append(before - cu.memory()[0])
result([codes, seen, taken])
"""
    assert simulated.python(TYPES + script).result() == [[304, 1, 801, 1], "hello", [4 * MIB, 0]]


def test_a_timeline_orders_two_processes(simulated: Simulated) -> None:
    """One waits for 7 in its stream, the other signals 7 behind a long kernel on another GPU."""
    (simulated.directory / "timeline").write_bytes(bytes(8))
    script = (
        TYPES
        + f"""
fd = os.open({str(simulated.directory / "timeline")!r}, os.O_RDWR)
raw = bytearray(96)  # CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
raw[0:4], raw[8:12] = (9).to_bytes(4, "little"), fd.to_bytes(4, "little")
semaphore = cu.out("cuImportExternalSemaphore", ctypes.c_void_p, (ctypes.c_char * 96).from_buffer(raw))
value = (ctypes.c_uint64 * 18)(7)
function, array = cu.function(), (ctypes.c_void_p * 1)(semaphore.value)
"""
    )
    waiter = simulated.python(
        script
        + """
cu.ok("cuWaitExternalSemaphoresAsync", array, value, 1, None)
cu.launch(function, 1_000_000)
print("waits", flush=True)
cu.ok("cuCtxSynchronize")
cu.ok("cuDestroyExternalSemaphore", semaphore)
result(True)
""",
        SIMGPU_TAG="waiter",
    )
    assert waiter.line() == "waits"
    simulated.python(
        script.replace("cu.start()", "cu.start(1)")
        + """
cu.launch(function, 100_000_000)
cu.ok("cuSignalExternalSemaphoresAsync", array, value, 1, None)
cu.ok("cuCtxSynchronize")
result(True)
"""
    ).result()
    assert waiter.result()
    (kernel,) = [each for each in simulated.log(0) if each.kind == "kernel"]
    (long,) = [each for each in simulated.log(1) if each.kind == "kernel"]
    assert kernel.begin_ns >= long.end_ns
