"""The pace of a machine: what calls cost the thread that makes them, and what a switch of contexts costs the GPU."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest
from simgpu.create import create
from simgpu.paces import PACES, Pace
from tests.kit.machine.simulated import Simulated

SLOW = Pace("slow", 3_000_000, 5_000_000, 400_000, 2_000_000, 1_000_000)
"""So slow that no call takes as long of itself, unless its thread is put aside: the tests below ask for no less."""
TIMED = """
def took_ns(call):
    begin = time.monotonic_ns()
    call()
    return time.monotonic_ns() - begin
cu.start()
function, stream = cu.function(), cu.stream()
event, address = cu.event(), cu.alloc(4096)
"""


@pytest.fixture
def slow(simulate: Callable[..., Simulated]) -> Simulated:
    return simulate(gpus=1, memory_mib=1024, pace=SLOW)


def test_a_machine_without_a_pace_has_none(simulated: Simulated) -> None:
    assert simulated.machine.pace is None


@pytest.mark.parametrize("name", PACES)
def test_a_machines_pace_is_kept(simulate: Callable[..., Simulated], name: str) -> None:
    assert simulate(gpus=1, pace=name).machine.pace == PACES[name]


def test_an_unknown_pace_is_refused_and_the_known_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no pace is called 'brisk': choose one of workstation, jetson, or none"):
        create(tmp_path, pace="brisk")
    assert not list(tmp_path.iterdir())


def test_submitting_takes_the_time_of_a_launch_within_the_call(slow: Simulated) -> None:
    script = """
text = b"x" * 64
size = ctypes.c_size_t
result([took_ns(lambda: cu.launch(function, 1000, stream)),
        took_ns(lambda: cu.ok("cuMemcpyHtoDAsync_v2", address, text, size(64), stream)),
        took_ns(lambda: cu.ok("cuMemsetD8Async", address, 0, size(64), stream)),
        took_ns(lambda: cu.ok("cuMemcpyHtoD_v2", address, text, size(64)))])
"""
    assert all(ns >= SLOW.launch_ns for ns in slow.python(TIMED + script).result())


def test_a_graph_takes_its_own_time_and_more_for_each_node(slow: Simulated) -> None:
    script = """
cu.ok("cuStreamBeginCapture_v2", stream, 0)
for _ in range(20):
    cu.launch(function, 1000, stream)
graph = cu.out_of("cuStreamEndCapture", ctypes.c_void_p, stream)
executable = cu.out("cuGraphInstantiateWithFlags", ctypes.c_void_p, graph, ctypes.c_ulonglong(0))
result(took_ns(lambda: cu.ok("cuGraphLaunch", executable, stream)))
"""
    assert slow.python(TIMED + script).result() >= SLOW.graph_launch_ns + 20 * SLOW.graph_node_ns


def test_events_take_their_time(slow: Simulated) -> None:
    script = """
result([took_ns(lambda: cu.ok("cuEventRecord", event, stream)),
        took_ns(lambda: cu.cuEventQuery(event)),
        took_ns(lambda: cu.cuStreamQuery(stream))])
"""
    record_ns, *queries_ns = slow.python(TIMED + script).result()
    assert record_ns >= SLOW.event_record_ns
    assert min(queries_ns) >= SLOW.event_query_ns


def test_a_kernel_begins_when_its_launch_has_been_paid_for(slow: Simulated) -> None:
    script = """
begin = time.monotonic_ns()
cu.launch(function, 1000, stream)
cu.ok("cuStreamSynchronize", stream)
result(begin)
"""
    begin_ns = slow.python(TIMED + script).result()
    (kernel,) = slow.machine.log(0)[0]
    assert kernel.begin_ns >= begin_ns + SLOW.launch_ns


def test_two_processes_pay_for_the_switches_between_them(simulate: Callable[..., Simulated]) -> None:
    """Exactly, by the machine's own log, whenever the programs came to run: nothing is executed within a switch."""
    pace = Pace("switching", context_switch_ns=300_000)
    simulated = simulate(gpus=1, memory_mib=1024, pace=pace)
    for tag in ("one", "other"):
        simulated.burn(tag, "--launches", 40, "--kernel-us", 500, "--mode", "sync")
    kernel_ns = [program.result()["kernel_ns"] for program in simulated.programs]
    intervals, _ = simulated.machine.log(0)
    pairs = itertools.pairwise(intervals)
    switches = [after.begin_ns - before.end_ns for before, after in pairs if after.process != before.process]
    assert switches
    assert min(switches) >= pace.context_switch_ns
    executed_ns = {tag: simulated.process(tag).executed_ns[0] for tag in ("one", "other")}
    assert list(executed_ns.values()) == kernel_ns
    logged_ns = sum(each.end_ns - each.begin_ns for each in intervals)
    assert logged_ns == simulated.machine.gpus()[0].busy_ns == sum(kernel_ns)
