"""What dies, stops or comes back, at every point of a short run in turn: nobody hangs, shares and turns are right
again."""

from collections.abc import Iterator
from functools import cache

import pytest

from bench.figures import held_turns
from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Fault, Program, Step, Thread
from tests.kit.virtual.cases.oracles import WINDOW_MS
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

NAMES = ("c0", "c1")
BEGIN_MS = 15
"""At each point of so long a run something happens: all are joined by then, and had some turns."""
CHUNKS = 20
QUICK_STRIDE = 40
"""`make check` tries every so many points."""

JUDGED_MS = 100
"""Turns are judged from then on: what happens at a point has happened by then, and who is stopped goes on later."""

STILL_MS = 57_000
"""So long somebody stands still, who goes on a second before a minute is over."""

ASKS = (Step(kind="alloc", amount=200 << 20), Step(kind="launch", count=4), Step(kind="wait"), Step(kind="free"))
STANDING_STILL = {
    "turns": (step_programs.burn(5000),) * 3,
    "beside each other": (step_programs.burn(5000), step_programs.think(1000, 2, 3000), step_programs.burn(5000)),
    "asking for memory": (
        Program(kernels=step_programs.kernels(5000), threads=(Thread(steps=(*ASKS, Step(kind="round"))),)),
    )
    * 3,
}
"""What runs where somebody stands still."""

SHORTEST_TURN_NS = 2_000_000
"""Of clients that always have work a turn is a slice of 5 ms, or what is left of one: one that has gone on launching
after it gave its slice back shows as kernels of 1 ms within the other's turn."""


def pair(settle_ms: int, measure_ms: int, *faults: Fault) -> Case:
    """Two clients that always have work."""
    client = Client(program=step_programs.burn(1000, wait_every=4), percent=50)
    return Case(
        clients=(client, client), settle_ms=settle_ms, measure_ms=measure_ms, step_ms=10, intervals=True, faults=faults
    )


@cache
def points(world: World, process: str) -> int:
    """How many it has until then."""
    first = world.run(pair(0, 1)).points_of[process] if process == "manager" else 0
    return world.run(pair(0, BEGIN_MS)).points_of[process] - first


@cache
def wakes(world: World) -> int:
    """How many there are that can be lost."""
    return int(world.run(pair(0, 10 * BEGIN_MS)).figures["wakes"])


def chunks() -> Iterator[object]:
    """Every point of a run is in one chunk; the first one has one of forty, for `make check`."""
    yield pytest.param(0, QUICK_STRIDE, id="some")
    for chunk in range(CHUNKS):
        yield pytest.param(chunk, CHUNKS, marks=pytest.mark.whole, id=f"{chunk + 1} of {CHUNKS}")


every_point = pytest.mark.parametrize(("offset", "stride"), list(chunks()))


def turns_of(report: Report, name: str) -> list[int]:
    """How long its turns were from before a stop's end on, but for the last, which the end of the run cuts."""
    from_ns = report.steps[0]["now_ns"] - (report.case.settle_ms - JUDGED_MS) * NS_PER_MS
    turns = held_turns(report.intervals)[1:-1]
    return [turn.end_ns - turn.begin_ns for turn in turns if turn.name == name and turn.begin_ns >= from_ns]


def assert_right_again(report: Report, point: int, short_turns: int) -> None:
    """Both have their shares, all of the GPU is used, and each has at most so many turns that are no slice."""
    told = (point, report.case.line())
    assert abs(report.share_percent("c0") - 50) < 4, told
    assert report.used_percent > 98, told
    for name in NAMES:
        turns = turns_of(report, name)
        assert turns, told
        assert sum(turn <= SHORTEST_TURN_NS for turn in turns) <= short_turns, told


@every_point
def test_what_a_killed_client_had_goes_to_the_other(world: World, offset: int, stride: int) -> None:
    for point in range(1 + offset, points(world, "c0"), stride):
        report = world.run(pair(30, 30, Fault(action="kill", process="c0", at_point=point)))
        assert report.busy_percent("c1") > 99, (point, report.case.line())
        assert report.of("executed_ns", "c0") == 0, (point, report.case.line())


@every_point
def test_a_stopped_client_loses_its_slice_and_launches_nothing_on_it_afterwards(
    world: World, offset: int, stride: int
) -> None:
    for point in range(1 + offset, points(world, "c0"), stride):
        report = world.run(pair(600, 200, Fault(action="stop", process="c0", at_point=point, for_ms=150)))
        # One launch may have passed the gate when it was stopped, goes on its way to the driver, and parts a turn.
        assert_right_again(report, point, short_turns=1)


@every_point
def test_shares_are_right_again_after_a_manager_was_killed_and_came_back(
    world: World, offset: int, stride: int
) -> None:
    for point in range(1 + offset, points(world, "manager"), stride):
        report = world.run(pair(300, 200, Fault(action="kill", process="manager", at_point=point, for_ms=20)))
        assert_right_again(report, point, short_turns=0)


@pytest.mark.parametrize("before_ms", [-250, -100, 0, 100])
def test_shares_are_right_again_where_one_stood_still_as_the_manager_was_killed(world: World, before_ms: int) -> None:
    percents = {"c0": 50, "c1": 30, "c2": 20}
    faults = (
        Fault(action="kill", process="manager", at_ms=500, for_ms=300),
        Fault(action="stop", process="c1", at_ms=500 - before_ms, for_ms=300),
    )
    clients = tuple(Client(program=step_programs.burn(1000), percent=percent) for percent in percents.values())
    report = world.run(Case(clients=clients, faults=faults, settle_ms=2000, measure_ms=2000))
    assert {name: report.busy_percent(name) for name in percents} == pytest.approx(percents, abs=1)


@every_point
def test_a_lost_wake_stops_nobody(world: World, offset: int, stride: int) -> None:
    """A kernel loses none, but for those of a process that dies just before it. Who waits for one looks again by
    itself, so that it costs nobody more than a slice."""
    for wake in range(1 + offset, wakes(world), stride):
        report = world.run(pair(300, 200).model_copy(update={"lost_wake": wake}))
        assert_right_again(report, wake, short_turns=0)


def test_the_other_runs_on_while_one_is_stopped(world: World) -> None:
    report = world.run(pair(250, 200, Fault(action="stop", process="c0", at_ms=50, for_ms=1000)))
    assert report.busy_percent("c1") > 99
    assert report.of("executed_ns", "c0") == 0


def trio(
    programs: tuple[Program, ...], settle_ms: int, *faults: Fault, latency: bool = False, limited: bool = False
) -> Case:
    """Three clients, measured for three seconds, of which the second one may be of the latency class, or all may have
    no more than their requests."""
    percents = zip(programs, (50, 30, 20), (False, latency, False), strict=True)
    clients = tuple(
        Client(program=each, percent=percent, latency=first, limit=percent if limited else 100)
        for each, percent, first in percents
    )
    return Case(clients=clients, settle_ms=settle_ms, measure_ms=3000, faults=faults)


def over_the_window(case: Case) -> Case:
    """Measured for as long as the rule looks back."""
    return case.model_copy(update={"measure_ms": WINDOW_MS})


@cache
def undisturbed(world: World, programs: tuple[Program, ...], **terms: bool) -> Report:
    """What they have where nothing happens."""
    return world.run(over_the_window(trio(programs, 1000, **terms)))


def assert_nobody_paid(world: World, programs: tuple[Program, ...], fault: Fault, **terms: bool) -> None:
    """A second after it goes on all have the shares that they have without it, and nobody is accused of anything."""
    report = world.run(over_the_window(trio(programs, 60_000, fault, **terms)))
    rest = undisturbed(world, programs, **terms)
    told = report.case.line()
    for name in report.case.names:
        assert report.share_percent(name) == pytest.approx(rest.share_percent(name), abs=1.5), told
        assert not report.steps[-1]["offences"][name], told
    assert report.used_percent > rest.used_percent - 1, told


@pytest.mark.parametrize("programs", STANDING_STILL.values(), ids=STANDING_STILL)
def test_nobody_pays_for_a_manager_that_stood_still(world: World, programs: tuple[Program, ...]) -> None:
    """Whoever has the device keeps it meanwhile, and cannot be called back."""
    for terms in ({}, {"latency": True}, {"limited": True}):
        point = world.run(trio(programs, 0, **terms)).points_of["manager"] // 2
        for before in (0, 13, 22, 59):
            fault = Fault(action="stop", process="manager", at_point=point - before, for_ms=STILL_MS)
            assert_nobody_paid(world, programs, fault, **terms)


@pytest.mark.parametrize("programs", STANDING_STILL.values(), ids=STANDING_STILL)
def test_nobody_pays_for_one_that_stood_still(world: World, programs: tuple[Program, ...]) -> None:
    """As it holds, as it waits, and in between."""
    for at_ms in (2000, 2003, 2007):
        assert_nobody_paid(world, programs, Fault(action="stop", process="c0", at_ms=at_ms, for_ms=STILL_MS))


LOOK_MS = (1880, 1920)
"""The manager looks at the devices each second. In between is the first look that it holds against an earlier one."""
LOOK_STRIDE = 5
"""To read the clock and then the pages takes twice as many points."""


@pytest.mark.parametrize("programs", STANDING_STILL.values(), ids=STANDING_STILL)
def test_nobody_is_accused_where_a_manager_stood_still_as_it_looked_at_the_devices(
    world: World, programs: tuple[Program, ...]
) -> None:
    """At some point it has what the driver said of the last second, and reads what pages have said since."""
    cases = [trio(programs, ms, limited=True).model_copy(update={"measure_ms": 1}) for ms in LOOK_MS]
    first, last = (world.run(case).points_of["manager"] for case in cases)
    for point in range(first, last, LOOK_STRIDE):
        fault = Fault(action="stop", process="manager", at_point=point, for_ms=5000)
        report = world.run(trio(programs, 5000, fault, limited=True))
        for name in report.case.names:
            assert not report.steps[-1]["offences"][name], (name, report.case.line())


UNPASSED_MS = 20_000
"""For so long nobody can be passed its pages: four times as long as a manager that is away is waited for."""


def unpassed(*faults: Fault, settle_ms: int, measure_ms: int, unpassed_ms: int = UNPASSED_MS) -> Case:
    """Two clients that always have work, and come while the kernel lets the manager pass no descriptors."""
    case = pair(settle_ms, measure_ms, *faults)
    return case.model_copy(update={"unpassed_ms": unpassed_ms, "step_ms": 100, "intervals": False})


def test_who_cannot_be_passed_its_pages_waits_for_as_long_as_the_manager_lives(world: World) -> None:
    meanwhile = world.run(unpassed(settle_ms=1000, measure_ms=UNPASSED_MS - 1000))
    for name in NAMES:
        assert meanwhile.of("executed_ns", name) == 0, meanwhile.case.line()
        # It is tried, and told of, ten times a second.
        assert meanwhile.offences(name)["not-welcomed"] > UNPASSED_MS // 200
    afterwards = world.run(unpassed(settle_ms=UNPASSED_MS + 300, measure_ms=1000))
    assert afterwards.share_percent("c0") == pytest.approx(50, abs=4), afterwards.case.line()
    assert afterwards.used_percent > 98, afterwards.case.line()


def test_a_manager_that_stands_still_is_not_waited_for_by_who_was_told_to_wait(world: World) -> None:
    """The grace time counts from the last word of it; and those who ran on wait again once it goes on."""
    point = world.run(unpassed(settle_ms=0, measure_ms=2000)).points_of["manager"]
    stop = Fault(action="stop", process="manager", at_point=point, for_ms=20_000)
    # The manager's own loop measures: from before it stands still until it has gone on.
    meanwhile = world.run(unpassed(stop, settle_ms=1000, measure_ms=23_000, unpassed_ms=60_000))
    assert meanwhile.used_percent * 23 / 100 == pytest.approx(15, abs=1), meanwhile.case.line()
    afterwards = world.run(unpassed(stop, settle_ms=30_000, measure_ms=25_000, unpassed_ms=60_000))
    assert afterwards.used_percent == 0, afterwards.case.line()
    shared = world.run(unpassed(stop, settle_ms=60_000, measure_ms=2000, unpassed_ms=59_000))
    assert shared.share_percent("c0") == pytest.approx(50, abs=4), shared.case.line()


FULL_MS = 20_000


def full(*faults: Fault, settle_ms: int, measure_ms: int) -> Case:
    """Two allocations that always have work; of the two processes of the first the manager lets in one."""
    client = Client(program=step_programs.burn(1000, wait_every=4), percent=50)
    several = client.model_copy(update={"processes": 2})
    times = {"settle_ms": settle_ms, "measure_ms": measure_ms, "step_ms": 100}
    return Case(clients=(several, client), max_clients=1, faults=faults, **times)  # type: ignore[arg-type]


def test_one_beyond_max_clients_waits_for_as_long_as_the_manager_lives_and_comes_in_once_there_is_room(
    world: World,
) -> None:
    meanwhile = world.run(full(settle_ms=0, measure_ms=FULL_MS))
    assert meanwhile.share_percent("c0") == pytest.approx(50, abs=1), meanwhile.case.line()
    # It asks again and again, and less and less often: five times in the first 3.1 s, and then each 1.6 s.
    assert meanwhile.offences("c0")["clients"] == pytest.approx(5 + (FULL_MS - 3100) // 1600, abs=2)
    ended = Fault(action="kill", process="c0", at_ms=FULL_MS)
    afterwards = world.run(full(ended, settle_ms=FULL_MS + 2000, measure_ms=1000))
    assert afterwards.share_percent("c0") == pytest.approx(50, abs=4), afterwards.case.line()
    assert afterwards.used_percent > 98, afterwards.case.line()


def test_a_manager_that_is_gone_is_not_waited_for_by_whom_it_refused(world: World) -> None:
    """After the grace time all three processes run side by side, two of them in the first allocation."""
    # Between two looks at how far all are, which the loop of the manager itself makes.
    gone = Fault(action="kill", process="manager", at_ms=2050, for_ms=28_000)
    report = world.run(full(gone, settle_ms=1000, measure_ms=27_000))
    assert report.share_percent("c0") == pytest.approx(100 * 2 / 3, abs=5), report.case.line()
