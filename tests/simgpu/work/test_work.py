"""Streams, events, copies, graphs and host functions of one process."""

from collections.abc import Callable
from itertools import pairwise

from tests.kit.machine.simulated import MS, Simulated

HELD = """
flags = cu.out("cuMemAllocHost_v2", ctypes.c_void_p, ctypes.c_size_t(8)).value
ctypes.memset(flags, 0, 8)
def hold(stream, at=0): cu.ok("cuStreamWaitValue32_v2", stream, ctypes.c_uint64(flags + at), ctypes.c_uint32(1), 0)
def let_go(at=0): ctypes.c_uint32.from_address(flags + at).value = 1
"""
"""Keeps what comes in a stream from running, until it is let go at one of two places: however late the program is."""


def test_work_of_a_stream_runs_in_order_and_launches_do_not_wait(simulated: Simulated) -> None:
    script = f"""
cu.start()
{HELD}
function, stream = cu.function(), cu.stream()
hold(stream)
for index in range(20):
    cu.launch(function, 5_000_000 + index, stream)
ready = cu.cuStreamQuery(stream)
before = time.monotonic_ns()
let_go()
cu.ok("cuStreamSynchronize", stream)
result([time.monotonic_ns() - before, ready, cu.cuStreamQuery(stream)])
"""
    took_ns, ready, after = simulated.python(script).result()
    assert took_ns >= 20 * 5 * MS
    assert (ready, after) == (600, 0)
    log = [each for each in simulated.log() if each.kind == "kernel"]
    assert [each.end_ns - each.begin_ns for each in log] == [5 * MS + index for index in range(20)]
    assert all(first.end_ns == second.begin_ns for first, second in pairwise(log))


def test_an_event_of_a_context_that_has_not_the_gpu_waits_for_its_turn(simulated: Simulated) -> None:
    script = """
cu.start()
function = cu.function()
end = cu.event()
cu.launch(function, 50_000_000)
cu.ok("cuEventRecord", end, None)
cu.out("cuCtxCreate_v2", ctypes.c_void_p, 0, 0)
own = cu.event()
cu.ok("cuEventRecord", own, None)
cu.ok("cuEventSynchronize", own)
result(cu.cuEventQuery(end))
"""
    assert simulated.python(script).result() == 0
    assert [each.kind for each in simulated.log()] == ["kernel"]


def test_events_give_the_time_of_the_work_between_them(simulated: Simulated) -> None:
    script = f"""
cu.start()
{HELD}
function, stream = cu.function(), cu.stream()
begin, end, held, late = (cu.event() for _ in range(4))
hold(stream)
cu.launch(function, 1_000_000, stream)
cu.ok("cuEventRecord", begin, stream)
cu.launch(function, 7_000_000, stream)
cu.ok("cuEventRecord", end, stream)
hold(stream, 4)
cu.ok("cuEventRecord", held, stream)
cu.launch(function, 30_000_000, stream)
cu.ok("cuEventRecord", late, stream)
let_go()
place = ctypes.c_float()
early = [cu.cuEventQuery(late), cu.cuEventElapsedTime(ctypes.byref(place), begin, late)]
cu.ok("cuEventSynchronize", end)
between = [cu.cuEventQuery(end), cu.cuEventQuery(late)]
passed = cu.elapsed_ms(begin, end)
back = cu.elapsed_ms(end, begin)
let_go(4)
for _ in range(9000):
    cu.launch(function, 0, stream)
cu.ok("cuCtxSynchronize")
untimed = cu.event(2)
cu.ok("cuEventRecord", untimed, None)
result([early, between, passed, back, cu.elapsed_ms(begin, end), cu.elapsed_ms(held, late),
        cu.cuEventElapsedTime(ctypes.byref(place), begin, untimed),
        cu.cuEventElapsedTime(ctypes.byref(place), begin, cu.event())])
"""
    assert simulated.python(script).result() == [[600, 600], [0, 600], 7.0, -7.0, 7.0, 30.0, 400, 400]


def test_the_legacy_stream_waits_for_the_others_but_for_those_that_ignore_it(simulated: Simulated) -> None:
    script = f"""
cu.start()
{HELD}
function, blocking, ignoring = cu.function(), cu.stream(0), cu.stream(1)
first, second = cu.event(), cu.event()
cu.launch(function, 20_000_000, blocking)
cu.ok("cuEventRecord", first, None)
hold(ignoring)
cu.launch(function, 40_000_000, ignoring)
cu.ok("cuEventRecord", second, None)
cu.ok("cuEventSynchronize", second)
found = [cu.cuEventQuery(first), cu.cuStreamQuery(blocking), cu.cuStreamQuery(ignoring)]
let_go()
cu.ok("cuCtxSynchronize")
result(found)
"""
    assert simulated.python(script).result() == [0, 0, 600]


def test_threads_have_default_streams_of_their_own(simulated: Simulated) -> None:
    script = """
import threading
context = cu.start()
function = cu.function()
cu.launch(function, 1_000_000, None, "cuLaunchKernel_ptsz")
def identify(found):
    cu.ok("cuCtxSetCurrent", context)
    place = ctypes.c_ulonglong()
    for name, stream in (("cuStreamGetId_ptsz", None), ("cuStreamGetId", None), ("cuStreamGetId", 2)):
        cu.ok(name, ctypes.c_void_p(stream), ctypes.byref(place))
        found.append(place.value)
found = [[], []]
for each in found:
    thread = threading.Thread(target=identify, args=(each,))
    thread.start()
    thread.join()
identify(found[0])
result([found[0][0] == found[0][2], found[0][0] != found[0][1], found[0][1] == found[1][1], found[0][0] != found[1][0]])
"""
    assert simulated.python(script).result() == [True, True, True, True]


def test_a_stream_waits_for_an_event_of_another_context(simulated: Simulated) -> None:
    script = """
cu.start(0)
event = cu.event()
cu.launch(cu.function(), 10_000_000)
cu.ok("cuEventRecord", event, None)
cu.start(1)
stream, function = cu.stream(), cu.function()
cu.ok("cuStreamWaitEvent", stream, event, 0)
cu.launch(function, 1_000_000, stream)
cu.ok("cuCtxSynchronize")
result(True)
"""
    assert simulated.python(script).result()
    assert simulated.log(1)[0].begin_ns >= simulated.log(0)[0].end_ns


def test_what_is_copied_to_the_device_comes_back(simulated: Simulated) -> None:
    script = """
cu.start()
stream = cu.stream()
data = os.urandom(100_000)
first, second = cu.alloc(100_000), cu.alloc(100_000)
back = ctypes.create_string_buffer(100_000)
cu.ok("cuMemcpyHtoD_v2", first, data, ctypes.c_size_t(100_000))
cu.ok("cuMemcpyDtoDAsync_v2", second, first, ctypes.c_size_t(100_000), stream)
cu.ok("cuMemcpyDtoHAsync_v2", back, second, ctypes.c_size_t(100_000), stream)
cu.ok("cuStreamSynchronize", stream)
same = back.raw == data
cu.ok("cuMemsetD8_v2", second, ctypes.c_ubyte(7), ctypes.c_size_t(10))
cu.ok("cuMemsetD32Async", ctypes.c_uint64(second.value + 12), ctypes.c_uint(0x01020304), ctypes.c_size_t(2), stream)
cu.ok("cuMemcpyDtoH_v2", back, second, ctypes.c_size_t(24))
result([same, back.raw[:10] == bytes([7] * 10), back.raw[12:20].hex(), back.raw[20:24] == data[20:24],
        cu.cuMemcpyHtoD_v2(ctypes.c_uint64(second.value + 99_990), data, ctypes.c_size_t(11)),
        cu.cuMemcpyDtoH_v2(back, ctypes.c_uint64(12345), ctypes.c_size_t(1)),
        cu.cuMemsetD32_v2(ctypes.c_uint64(second.value + 1), 0, ctypes.c_size_t(1))])
"""
    assert simulated.python(script).result() == [True, True, "0403020104030201", True, 1, 1, 1]
    assert {each.kind for each in simulated.log()} == {"copy", "set"}


def test_planes_are_copied_row_by_row(simulated: Simulated) -> None:
    script = """
cu.start()
class Plan(ctypes.Structure):
    _fields_ = [(f"{side}{name}", kind) for side in ("src", "dst") for name, kind in
                (("X", ctypes.c_size_t), ("Y", ctypes.c_size_t), ("Type", ctypes.c_int), ("Host", ctypes.c_void_p),
                 ("Device", ctypes.c_uint64), ("Array", ctypes.c_void_p), ("Pitch", ctypes.c_size_t))]
    _fields_ += [("Width", ctypes.c_size_t), ("Height", ctypes.c_size_t)]
pointer, pitch = ctypes.c_uint64(), ctypes.c_size_t()
cu.ok("cuMemAllocPitch_v2", ctypes.byref(pointer), ctypes.byref(pitch), ctypes.c_size_t(10), ctypes.c_size_t(4), 4)
source = ctypes.create_string_buffer(bytes(range(60)), 60)
back = ctypes.create_string_buffer(60)
plan = Plan(srcX=1, srcY=1, srcType=1, srcHost=ctypes.addressof(source), srcPitch=15, dstType=2,
            dstDevice=pointer.value, dstPitch=pitch.value, Width=10, Height=3)
cu.ok("cuMemcpy2D_v2", ctypes.byref(plan))
plan = Plan(srcType=2, srcDevice=pointer.value, srcPitch=pitch.value, dstType=1, dstHost=ctypes.addressof(back),
            dstPitch=20, Width=10, Height=3)
cu.ok("cuMemcpy2DAsync_v2", ctypes.byref(plan), None)
cu.ok("cuCtxSynchronize")
plan.srcPitch = 5
result([[list(back.raw[row * 20:row * 20 + 11]) for row in range(3)], cu.cuMemcpy2D_v2(ctypes.byref(plan))])
"""
    rows = [[*range(15 * row + 1, 15 * row + 11), 0] for row in (1, 2, 3)]
    assert simulated.python(script).result() == [rows, 1]


def test_host_functions_run_in_their_place(simulated: Simulated) -> None:
    script = """
cu.start()
function, stream = cu.function(), cu.stream()
calls = []
kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
call = kind(lambda data: (calls.append([data, time.monotonic_ns()]), time.sleep(0.02)))
cu.launch(function, 3_000_000, stream)
cu.ok("cuLaunchHostFunc", stream, call, ctypes.c_void_p(5))
cu.launch(function, 3_000_000, stream)
cu.ok("cuLaunchHostFunc", stream, call, ctypes.c_void_p(6))
cu.ok("cuStreamSynchronize", stream)
result([[each[0] for each in calls], calls[0][1], calls[1][1], time.monotonic_ns()])
"""
    order, first_ns, second_ns, end_ns = simulated.python(script).result()
    kernels = [each for each in simulated.log() if each.kind == "kernel"]
    assert order == [5, 6]
    assert kernels[0].end_ns <= first_ns < first_ns + 20 * MS <= kernels[1].begin_ns
    assert kernels[1].end_ns <= second_ns < second_ns + 20 * MS <= end_ns


def test_a_full_queue_holds_the_launch_back(simulate: Callable[..., Simulated]) -> None:
    simulated = simulate(gpus=1)
    script = f"""
import threading
context = cu.start()
{HELD}
function = cu.function()
def launch():
    cu.ok("cuCtxSetCurrent", context)
    cu.launch(function, 1_000_000)
hold(None)
for _ in range(1023):
    launch()
one_more = threading.Thread(target=launch)
one_more.start()
one_more.join(0.1)
held = one_more.is_alive()
let_go()
one_more.join()
cu.ok("cuCtxSynchronize")
result(held)
"""
    assert simulated.python(script).result()
    assert simulated.machine.gpus()[0].busy_ns == 1024 * MS


def test_the_machine_counts_the_events_that_a_process_records(simulated: Simulated) -> None:
    script = """
cu.start()
function, event = cu.function(), cu.event()
for _ in range(7):
    cu.launch(function, 1000)
    cu.ok("cuEventRecord", event, None)
cu.ok("cuCtxSynchronize")
result(None)
"""
    simulated.python(script).result()
    assert simulated.machine.processes()[-1].events[0] == 7
