"""Streams that are captured, and what a capture forbids."""

from tests.kit.machine.simulated import MS, Simulated


def test_a_captured_stream_becomes_a_graph(simulated: Simulated) -> None:
    script = """
cu.start()
function, stream, branch = cu.function(), cu.stream(), cu.stream()
fork, join = cu.event(), cu.event()
def capturing(of):
    place = ctypes.c_int()
    cu.ok("cuStreamIsCapturing", of, ctypes.byref(place))
    return place.value
cu.ok("cuStreamBeginCapture_v2", stream, 0)
cu.launch(function, 1_000_000, stream)
cu.ok("cuEventRecord", fork, stream)
cu.ok("cuStreamWaitEvent", branch, fork, 0)
cu.launch(function, 2_000_000, branch)
cu.ok("cuEventRecord", join, branch)
cu.ok("cuStreamWaitEvent", stream, join, 0)
cu.launch(function, 3_000_000, stream)
inside = [capturing(stream), capturing(branch), cu.cuEventQuery(join)]
graph = ctypes.c_void_p()
cu.ok("cuStreamEndCapture", stream, ctypes.byref(graph))
outside = [capturing(stream), capturing(branch)]
count = ctypes.c_size_t()
cu.ok("cuGraphGetNodes", graph, None, ctypes.byref(count))
exec_ = cu.out("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, ctypes.c_ulonglong(0))
cu.ok("cuGraphDestroy", graph)
cu.ok("cuGraphLaunch", exec_, stream)
cu.ok("cuGraphLaunch", exec_, stream)
cu.ok("cuStreamSynchronize", stream)
cu.ok("cuGraphExecDestroy", exec_)
result([inside, outside, count.value])
"""
    assert simulated.python(script).result() == [[1, 1, 907], [0, 0], 3]
    assert [(each.end_ns - each.begin_ns) // MS for each in simulated.log()] == [1, 2, 3, 1, 2, 3]


def test_calls_that_a_capture_forbids_break_it(simulated: Simulated) -> None:
    script = """
import threading
context = cu.start()
function = cu.function()
def broken_by(call, mode=0, flags=0):
    stream, graph = cu.stream(flags), ctypes.c_void_p()
    cu.ok("cuStreamBeginCapture_v2", stream, mode)
    cu.ok("cuStreamSynchronize", other)
    code = call(stream)
    return [code, cu.cuStreamEndCapture(stream, ctypes.byref(graph))]
other, event = cu.stream(1), cu.event()
cu.ok("cuEventRecord", event, other)
place = ctypes.c_uint64()
def elsewhere(call):
    def run(stream):
        def work():
            cu.ok("cuCtxSetCurrent", context)
            codes.append(call(stream))
        codes = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return codes[0]
    return run
def relaxed(stream):
    mode = ctypes.c_int(2)
    cu.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    code = cu.cuEventQuery(event)
    cu.ok("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    return [code, mode.value]
def unjoined(stream):
    branch, fork = cu.stream(), cu.event()
    cu.ok("cuEventRecord", fork, stream)
    cu.ok("cuStreamWaitEvent", branch, fork, 0)
    return cu.launch(function, 1, branch)
result([broken_by(lambda s: cu.cuEventQuery(event)), broken_by(lambda s: cu.cuStreamSynchronize(s)),
        broken_by(lambda s: cu.cuMemAlloc_v2(ctypes.byref(place), 1)), broken_by(lambda s: cu.cuCtxSynchronize()),
        broken_by(lambda s: cu.launch(function, 1, None)), broken_by(lambda s: cu.launch(function, 1, None), flags=1),
        broken_by(elsewhere(lambda s: cu.cuEventQuery(event))),
        broken_by(elsewhere(lambda s: cu.cuEventQuery(event)), 1),
        broken_by(elsewhere(relaxed)), broken_by(relaxed), broken_by(unjoined),
        broken_by(lambda s: cu.cuEventQuery(event), 2)])
"""
    assert simulated.python(script).result() == [
        [900, 901],
        [900, 901],
        [900, 901],
        [900, 901],
        [906, 901],
        [0, 0],
        [900, 901],
        [0, 0],
        [[0, 2], 0],
        [[0, 2], 0],
        [0, 904],
        [0, 0],
    ]
