"""Who gets what, and what status tells of it, to a point: three programs, one of which comes late, dies, stops or
pauses; a limit; a manager that was away. In real time tests/node/test_share_order.py judges the order alone."""

import pytest

from bench.figures import held_turns
from edgeshare.contract.units import NS_PER_MS, NS_PER_US
from sharemgr.node.config import Config
from sharemgr.node.turns.settings import Settings
from simgpu.stage.executed import executed_ns
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Fault, Kernel, Program, Step, Thread
from tests.kit.virtual.cases.oracles import WINDOW_MS
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

BUSY = step_programs.burn(1000)
THREE = tuple(Client(program=BUSY, percent=percent) for percent in (50, 30, 20))
RULE = Settings()
LIMIT_POINTS = 1
TOLD_PERCENT = 2

AT_MS = (1000, 1001.7, 1003.1, 1004.9, 1011.3, 1013.7)
"""Within a slice of the one to which it happens, and within the others'."""

UNSHARED_MS = 3000
"""So long programs run on after the grace time."""

BACK_MS = 500
"""So long after its return a manager has its shares back: what was queued unshared is done by then."""


def assert_shares(report: Report, *percents: float, kernel_us: int = 1000) -> None:
    """What each got of what was executed is within the rule's bound of what is due (policy.py), and nothing is left
    idle."""
    q_ns = RULE.slice_ns + RULE.queue_cap_ns + kernel_us * NS_PER_US + RULE.anticipation_ns
    points = 100 * 2 * q_ns / report.measured_ns
    got = [report.share_percent(name) for name in report.case.names]
    assert got == pytest.approx(percents, abs=points)
    assert report.used_percent > 99


def held_ns(report: Report, name: str) -> int:
    """What its turns took, as the GPU saw them."""
    begin_ns, end_ns = (int(report.steps[edge]["now_ns"]) for edge in (0, -1))
    return executed_ns(held_turns(report.intervals), begin_ns, end_ns)[name]


def test_each_gets_its_request(world: World) -> None:
    report = world.run(Case(clients=THREE, measure_ms=4000))
    assert_shares(report, 50, 30, 20)


@pytest.mark.parametrize("length_us", [100, 1000, 10_000])
@pytest.mark.parametrize(("percent", "limit"), [(20, 40), (40, 40), (50, 90)])
def test_a_limit_is_reached_and_not_passed_when_nobody_else_wants_the_gpu(
    world: World, percent: int, limit: int, length_us: int
) -> None:
    client = Client(program=step_programs.burn(length_us), percent=percent, limit=limit)
    report = world.run(Case(clients=(client,), measure_ms=4000))
    assert report.busy_percent("c0") == pytest.approx(limit, abs=LIMIT_POINTS)


@pytest.mark.parametrize("at_ms", AT_MS)
def test_what_a_killed_program_had_goes_to_the_others_by_their_requests(world: World, at_ms: float) -> None:
    killed = Fault(action="kill", process="c0", at_ms=at_ms)
    report = world.run(Case(clients=THREE, settle_ms=1200, measure_ms=4000, faults=(killed,)))
    assert report.steps[0]["executed_ns"]["c0"] > 0
    assert_shares(report, 0, 60, 40)


@pytest.mark.parametrize("at_ms", AT_MS)
def test_one_that_keeps_its_slice_costs_the_others_nothing_and_is_charged(world: World, at_ms: float) -> None:
    stopped = Fault(action="stop", process="c0", at_ms=at_ms, for_ms=60_000)
    report = world.run(Case(clients=THREE, settle_ms=1200, measure_ms=4000, faults=(stopped,)))
    assert_shares(report, 0, 60, 40)
    # It keeps the GPU, as far as anybody can say, and its time goes on.
    assert report.of("held_ns", "c0") == pytest.approx(report.measured_ns, rel=TOLD_PERCENT / 100)


def test_one_that_comes_late_has_its_share_at_once(world: World) -> None:
    late = THREE[0].model_copy(update={"delay_ms": 1000})
    before = world.run(Case(clients=(late, *THREE[1:]), settle_ms=200, measure_ms=700))
    after = world.run(Case(clients=(late, *THREE[1:]), settle_ms=1200, measure_ms=4000))
    assert_shares(before, 0, 60, 40)
    assert_shares(after, 50, 30, 20)


def test_shares_are_right_while_one_pauses_and_when_it_is_back(world: World) -> None:
    steps = (Step(kind="launch", count=1000), Step(kind="wait"), Step(kind="think", amount=3_000_000_000))
    pausing = Program(kernels=step_programs.kernels(1000), threads=(Thread(steps=(*steps, Step(kind="round"))),))
    clients = (THREE[0].model_copy(update={"program": pausing}), *THREE[1:])
    # A thousand kernels of 1 ms are done after 2 s, and three more pass until the next thousand.
    for settle_ms, due in ((500, [50, 30, 20]), (3000, [0, 60, 40]), (5500, [50, 30, 20])):
        report = world.run(Case(clients=clients, settle_ms=settle_ms, measure_ms=1000))
        assert_shares(report, *due)


@pytest.mark.parametrize("length_us", [1000, 10_000])
def test_shares_are_back_with_a_manager_that_was_away_for_longer_than_its_grace(world: World, length_us: int) -> None:
    grace_ms = 1000 * Config().grace_s
    away = Fault(action="kill", process="manager", at_ms=1000, for_ms=grace_ms + UNSHARED_MS)
    clients = tuple(Client(program=step_programs.burn(length_us), percent=percent) for percent in (70, 30))
    settle_ms = int(away.at_ms + away.for_ms) + BACK_MS
    report = world.run(Case(clients=clients, settle_ms=settle_ms, measure_ms=4000, faults=(away,)))
    before = sum(report.steps[0]["executed_ns"].values()) / NS_PER_MS
    # Until it was killed, and from the grace time's end on, but for one slice each.
    assert before == pytest.approx(settle_ms - grace_ms, rel=0.05)
    assert_shares(report, 70, 30, kernel_us=length_us)


@pytest.mark.parametrize("percents", [(50, 30, 20), (70, 30), (10, 10, 10)])
def test_status_tells_the_gpu_time_and_the_held_time_of_each(world: World, percents: tuple[int, ...]) -> None:
    clients = tuple(Client(program=BUSY, percent=percent) for percent in percents)
    # Told of all since the start, as it is shorter than the window.
    report = world.run(Case(clients=clients, settle_ms=0, measure_ms=8000, intervals=True))
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT
        assert report.steps[-1]["held_ns"][name] == pytest.approx(held_ns(report, name), rel=TOLD_PERCENT / 100)
        assert report.steps[-1]["longest_wait_ns"][name] > 0


@pytest.mark.parametrize("pace", PACES)
def test_status_tells_the_gpu_time_of_who_waits_by_an_event(world: World, pace: str) -> None:
    """Nothing but that wait says when its work ended: seen each tenth of a second, it would be taken for longer."""
    steps = (
        *(Step(kind="launch", count=64), Step(kind="record"), Step(kind="wait_event")),
        *(Step(kind="think", amount=20 * NS_PER_MS), Step(kind="round")),
    )
    program = Program(kernels=step_programs.kernels(100), threads=(Thread(steps=steps),))
    report = world.run(Case(clients=(Client(program=program, percent=60),), pace=pace, settle_ms=0, measure_ms=8000))
    assert abs(report.gpu_error_percent("c0")) < TOLD_PERCENT


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("kind", ["upload", "download", "fetch", "fill"])
def test_status_tells_the_gpu_time_of_who_copies_a_little(world: World, kind: str, pace: str) -> None:
    """A page takes the device less than the calls that would measure it, and with them all that it is beside."""
    steps = (
        Step(kind="alloc", amount=1 << 20),
        *(Step(kind="launch", count=16), Step(kind=kind, amount=4096), Step(kind="wait"), Step(kind="round")),
    )
    program = Program(kernels=step_programs.kernels(5), threads=(Thread(steps=steps, again=1),))
    report = world.run(Case(clients=(Client(program=program, percent=60),), pace=pace, settle_ms=0, measure_ms=4000))
    assert abs(report.gpu_error_percent("c0")) < TOLD_PERCENT


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("rivals", [0, 1])
def test_the_time_of_host_functions_is_no_gpu_time(world: World, rivals: int, pace: str) -> None:
    """Nor is it taken for that of the kernels that wait for them in their stream."""
    steps = (
        *(Step(kind="launch", count=2), Step(kind="host", amount=2 * NS_PER_MS), Step(kind="launch", count=2)),
        *(Step(kind="wait"), Step(kind="round")),
    )
    program = Program(kernels=step_programs.kernels(500), threads=(Thread(steps=steps),))
    clients = (Client(program=program, percent=50), *[Client(program=BUSY, percent=50)] * rivals)
    report = world.run(Case(clients=clients, pace=pace, settle_ms=0, measure_ms=4000))
    assert report.clients["c0"]["rounds"] > 100
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT


@pytest.mark.parametrize("pace", PACES)
def test_status_tells_the_gpu_time_of_threads_that_launch_into_one_stream(world: World, pace: str) -> None:
    """While one is timed, another launches into the same stream: the two together are not taken for the one."""
    thread = Thread(steps=(Step(kind="launch", count=4), Step(kind="wait"), Step(kind="round")))
    program = Program(kernels=step_programs.kernels(2), threads=(thread, thread, thread))
    clients = (Client(program=program, percent=50), Client(program=BUSY, percent=50))
    report = world.run(Case(clients=clients, pace=pace, settle_ms=0, measure_ms=4000))
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize(("length_us", "launches"), [(20_000, 2), (5000, 4)])
def test_what_was_never_seen_is_not_foretold_to_be_over_soon(
    world: World, length_us: int, launches: int, pace: str
) -> None:
    """Two programs that begin at once with functions that nobody knows: neither runs beside what the other has queued,
    where a device takes turns between processes, and is told of time that was the other's. A first drain is
    waited for no longer than ``Settings.drain_grace_ns``; where 80 ms are queued that makes little over a window."""
    order = range(0, 2 * launches, launches)
    program = Program(
        kernels=step_programs.kernels(*[length_us] * 2 * launches),
        threads=tuple(
            Thread(
                steps=(
                    *(Step(kind="launch", object=first + each) for each in range(launches)),
                    *(Step(kind="wait"), Step(kind="round")),
                )
            )
            for first in order
        ),
    )
    clients = (Client(program=program, percent=50), Client(program=program, percent=50, delay_ms=1))
    report = world.run(
        Case(clients=clients, pace=pace, scheduling="timeslice", settle_ms=0, measure_ms=WINDOW_MS),
    )
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT


@pytest.mark.parametrize("scheduling", ["fifo", "timeslice"])
def test_status_tells_the_gpu_time_of_a_function_that_takes_now_so_long_now_so_long_beside_others(
    world: World, scheduling: str
) -> None:
    """Its short launches count for no more than went by, and what they count for above that is the long ones'."""
    kernels = (Kernel(duration_ns=NS_PER_MS), Kernel(duration_ns=20 * NS_PER_MS))
    steps = (
        *(Step(kind="launch", count=4), Step(kind="launch", object=1), Step(kind="wait")),
        *(Step(kind="think", amount=3 * NS_PER_MS), Step(kind="round")),
    )
    varies = Program(kernels=kernels, threads=(Thread(steps=steps),))
    light = step_programs.think(100, 1, 2000)
    clients = (Client(program=varies, percent=60), *(Client(program=light, percent=20) for _ in range(2)))
    report = world.run(Case(clients=clients, scheduling=scheduling, settle_ms=0, measure_ms=3000))
    for name in report.case.names:
        assert abs(report.gpu_error_percent(name)) < TOLD_PERCENT


def test_what_is_told_in_all_grows_by_what_was_executed_held_and_waited_for(world: World) -> None:
    # Longer than the window of which shares are told.
    report = world.run(Case(clients=THREE, settle_ms=500, measure_ms=11_000, intervals=True))
    for name in report.case.names:
        held_total_ns = report.of("held_total_ns", name)
        assert report.of("gpu_total_ns", name) == pytest.approx(report.of("executed_ns", name), rel=TOLD_PERCENT / 100)
        assert held_total_ns == pytest.approx(held_ns(report, name), rel=TOLD_PERCENT / 100)
        # None ever pauses: it has its turn or waits for it.
        work_ns = held_total_ns + report.of("waited_total_ns", name)
        assert work_ns == pytest.approx(report.measured_ns, rel=TOLD_PERCENT / 100)
