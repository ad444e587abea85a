"""The hook while the gates of others are open, too: what it says that it used, how long it was idle, what it keeps
queued, and when it gives its grant back. Nobody decides here: gates are opened and closed as each case says."""

import pytest

from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import ANY, Case, Client, Kernel, Opening, Program, Step, Thread
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

ALONE_MS, APART_MS = 400, 30
"""How long each has the device for itself at first, to learn its costs; and how long none has between two."""

EXACT = 0.02
"""Of what was executed, or of the idle time that there was."""


def client(program: Program, percent: int = 30) -> Client:
    return Client(program=program, percent=percent)


def one_by_one(*programs: Program, beside: Opening, measure_ms: int = 1000, **kwargs: object) -> Case:
    """Each has the device to itself for a while, and then all are beside each other."""
    clients = tuple(client(program) for program in programs)
    openings: list[Opening] = []
    begin_ms = 0
    for index in range(len(programs)):
        openings.append(Opening(at_ms=begin_ms, open=(f"c{index}",)))
        openings.append(Opening(at_ms=begin_ms + ALONE_MS - APART_MS))
        begin_ms += ALONE_MS
    openings.append(beside.model_copy(update={"at_ms": begin_ms}))
    return Case(
        clients=clients,
        openings=tuple(openings),
        settle_ms=begin_ms + 100,
        measure_ms=measure_ms,
        **kwargs,  # type: ignore[arg-type]
    )


def used(report: Report, name: str, what: str) -> int:
    """By how much it grew in the measured time."""
    first, last = report.steps[0]["used"][name], report.steps[-1]["used"][name]
    return int(last[what] - first[what])


def said(report: Report, name: str, kind: str) -> int:
    return report.steps[-1]["said"][name].get(kind, 0) - report.steps[0]["said"][name].get(kind, 0)


def off(report: Report, name: str) -> float:
    """How far what it says that it used is from what was executed, of that."""
    return used(report, name, "gpu_ns") / report.of("executed_ns", name) - 1


ALL = Opening(at_ms=0, open=("c0", "c1"))

PROGRAMS = {
    "bursts of 5 us": step_programs.think(5, 8, 100),
    "bursts of 20 us": step_programs.think(20, 8, 100),
    "bursts of 100 us": step_programs.think(100, 4, 300),
    "one of 500 us": step_programs.think(500, 1, 400),
    "each waited for": step_programs.wait_each(50, 20),
    "queue full of 5 us": step_programs.burn(5),
    "queue full of 500 us": step_programs.burn(500),
    "mixed": step_programs.mixed((5, 4), (50, 2), (500, 1)),
    "graphs": step_programs.graphs(5, 20),
}
THREADS = {"threads in turn": step_programs.turns((5, 20), 2)}
"""With no rival their gaps are still told as GPU time (docs/develop/testing.md: not asked of random programs yet)."""


@pytest.mark.parametrize("contended", [False, True])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_alone_it_says_what_was_executed(world: World, program: Program, contended: bool) -> None:
    opening = Opening(at_ms=0, open=("c0",), contended=contended)
    # Of a queue of 50 ms, which one alone may have, half is told of at a time.
    report = world.run(Case(clients=(client(program),), openings=(opening,), settle_ms=500, measure_ms=4000))
    assert abs(off(report, "c0")) <= EXACT


@pytest.mark.parametrize("rival", [5, 50, 500])
@pytest.mark.parametrize("program", (PROGRAMS | THREADS).values(), ids=PROGRAMS | THREADS)
def test_beside_another_it_says_what_was_executed_of_its_own(world: World, program: Program, rival: int) -> None:
    """Of kernels whose costs it learned alone."""
    report = world.run(one_by_one(program, step_programs.burn(rival), beside=ALL))
    assert report.used_percent > 90
    assert abs(off(report, "c0")) <= EXACT
    assert abs(off(report, "c1")) <= EXACT


@pytest.mark.parametrize("scheduling", ["fifo", "timeslice"])
def test_what_ran_while_others_came_and_went_counts_its_own_time(world: World, scheduling: str) -> None:
    """Each 24 ms another is in for a while, whose kernels still run when its gate is closed."""
    case = one_by_one(step_programs.burn(5000), step_programs.burn(3000), beside=ALL, scheduling=scheduling)
    openings = list(case.openings[:-1])
    begin_ms = case.openings[-1].at_ms
    for at_ms in range(0, 1200, 24):
        openings.append(Opening(at_ms=begin_ms + at_ms, open=("c0", "c1")))
        openings.append(Opening(at_ms=begin_ms + at_ms + 8, open=("c0",), others=True))
        openings.append(Opening(at_ms=begin_ms + at_ms + 15, open=("c0",)))
    report = world.run(case.model_copy(update={"openings": tuple(openings)}))
    assert report.busy_percent("c1") > 10
    assert abs(off(report, "c0")) <= EXACT


@pytest.mark.parametrize("name", ["bursts of 5 us", "bursts of 20 us", "bursts of 100 us", "one of 500 us"])
def test_it_is_idle_for_as_long_beside_another_as_alone(world: World, name: str) -> None:
    program = PROGRAMS[name]
    alone = world.run(
        Case(
            clients=(client(program),),
            openings=(Opening(at_ms=0, open=("c0",), contended=False),),
            settle_ms=500,
            measure_ms=1000,
        )
    )
    beside = world.run(one_by_one(program, step_programs.burn(50), beside=ALL))
    idle_ns = [used(each, "c0", "idle_ns") / each.of("rounds", "c0") for each in (alone, beside)]
    assert idle_ns[1] == pytest.approx(idle_ns[0], rel=EXACT)
    assert idle_ns[0] == pytest.approx(program.threads[0].steps[2].amount, rel=0.2)


def test_one_that_waits_for_nothing_is_seen_to_be_idle_soon(world: World) -> None:
    steps = (Step(kind="launch"), Step(kind="think", amount=40_000_000), Step(kind="round"))
    program = Program(kernels=step_programs.kernels(1000), threads=(Thread(steps=steps),))
    report = world.run(one_by_one(program, step_programs.burn(100), beside=ALL))
    assert used(report, "c0", "idle_ns") > 0.8 * (report.measured_ns - report.of("executed_ns", "c0"))


def test_one_that_waits_at_the_gate_is_not_idle_and_one_that_thinks_behind_it_is(world: World) -> None:
    clients = (client(step_programs.burn(100)), client(step_programs.think(100, 1, 700_000)))
    openings = (Opening(at_ms=0, open=("c0", "c1")), Opening(at_ms=200))
    report = world.run(Case(clients=clients, openings=openings, settle_ms=300, measure_ms=300))
    assert used(report, "c0", "idle_ns") == 0
    assert used(report, "c1", "idle_ns") == pytest.approx(report.measured_ns, rel=EXACT)
    first, last = (report.steps[edge]["used"] for edge in (0, -1))
    assert (first["c0"]["waits"], first["c0"]["queued"]) == (1, 0)
    assert (last["c1"]["waits"], last["c1"]["queued"]) == (0, 0)


def test_what_it_used_when_it_drained_last_is_said(world: World) -> None:
    """Of one that keeps its queue full that is at its begin, of one that pauses next to all."""
    report = world.run(one_by_one(step_programs.think(20, 8, 100), step_programs.burn(100), beside=ALL))
    thinks, burns = (report.steps[-1]["used"][name] for name in ("c0", "c1"))
    assert thinks["gpu_ns"] - thinks["drained_gpu_ns"] <= 8 * 20_000
    assert burns["gpu_ns"] - burns["drained_gpu_ns"] >= used(report, "c1", "gpu_ns")
    assert burns["queued"] == 1


def test_over_its_pauses_it_keeps_a_grant_that_nobody_waits_for(world: World) -> None:
    """50 ms are far more than any turn is kept for; 150 ms are long for one without a rival, too."""
    for pause_us, count in ((50_000, 0), (150_000, 6)):
        program = step_programs.think(100, 1, pause_us)
        report = world.run(one_by_one(program, step_programs.burn(100), beside=ALL))
        assert abs(said(report, "c0", "Release") - count) <= 1


def test_where_it_is_to_tell_it_gives_its_grant_back_in_each_pause(world: World) -> None:
    opening = ALL.model_copy(update={"tells": True})
    report = world.run(one_by_one(step_programs.think(100, 1, 5_000), step_programs.burn(100), beside=opening))
    assert said(report, "c0", "Release") == pytest.approx(report.of("rounds", "c0"), abs=1)


@pytest.mark.parametrize("beside", [False, True])
def test_beside_others_no_drain_is_foretold(world: World, beside: bool) -> None:
    """By one whose gate is closed while it has much queued, of a function that takes now so long, now so long."""
    lengths_ns = (200_000, 3_000_000)
    unlike = Program(
        kernels=tuple(Kernel(duration_ns=ns) for ns in lengths_ns),
        threads=(Thread(steps=(Step(kind="launch", object=ANY), Step(kind="round"))),),
    )
    openings = [Opening(at_ms=0, open=("c0",), contended=False)]
    for index in range(1, 6):
        openings.append(Opening(at_ms=300 * index))
        openings.append(Opening(at_ms=300 * index + 200, open=("c0", "c1") if beside else ("c0",), contended=False))
    clients = (client(unlike), client(step_programs.burn(50)))
    report = world.run(Case(clients=clients, openings=tuple(openings), settle_ms=550, measure_ms=1200))
    assert said(report, "c0", "Release") >= 3
    assert (said(report, "c0", "Draining") > 0) != beside


@pytest.mark.parametrize("held", [False, True])
def test_of_what_waits_for_a_function_of_the_host_no_drain_is_foretold(world: World, held: bool) -> None:
    """When that ends nobody knows, and whoever is let in before runs beside what is queued behind it."""
    launch, function = Step(kind="launch", object=ANY, count=4), Step(kind="host", amount=2_000_000)
    unlike = Program(
        kernels=tuple(Kernel(duration_ns=ns) for ns in (200_000, 3_000_000)),
        threads=(Thread(steps=(launch, *([function] if held else ()), Step(kind="round"))),),
    )
    openings = [Opening(at_ms=0, open=("c0",), contended=False)]
    for index in range(1, 6):
        openings.append(Opening(at_ms=300 * index))
        openings.append(Opening(at_ms=300 * index + 200, open=("c0",), contended=False))
    clients = (client(unlike), client(step_programs.burn(50)))
    report = world.run(Case(clients=clients, openings=tuple(openings), settle_ms=550, measure_ms=1200))
    assert said(report, "c0", "Release") >= 3
    assert (said(report, "c0", "Draining") > 0) != held


@pytest.mark.parametrize("kernel_us", [5, 20, 100, 1000, 10_000])
def test_a_small_cap_of_its_own_holds_and_blocks_nobody(world: World, kernel_us: int) -> None:
    """Beyond the cap there is one kernel at most; it is kept busy as far as its wake-ups allow, which do not come by
    looking again and again."""
    opening = ALL.model_copy(update={"capped": ("c1",), "cap_us": 20})
    light = step_programs.think(20, 4, 400)
    report = world.run(one_by_one(light, step_programs.burn(kernel_us), beside=opening, measure_ms=1000, step_ms=1))
    queued_us = [step["used"]["c1"]["backlog_ns"] / 1000 for step in report.steps]
    assert max(queued_us) <= 20 + kernel_us
    launches = report.of("executed_ns", "c1") / (1000 * kernel_us)
    assert report.busy_percent("c1") > 20
    assert abs(off(report, "c1")) <= EXACT
    assert abs(off(report, "c0")) <= EXACT
    assert report.points_of["c1"] <= 100 * launches + 200_000


def test_without_a_cap_of_its_own_that_of_the_welcome_holds(world: World) -> None:
    report = world.run(one_by_one(step_programs.think(20, 4, 400), step_programs.burn(100), beside=ALL, step_ms=1))
    queued_us = [step["used"]["c1"]["backlog_ns"] / 1000 for step in report.steps]
    assert 300 < max(queued_us) <= 600


FIRST_SEEN = {
    "each waited for": step_programs.wait_each(5, 20),
    "bursts of 40 us": step_programs.think(40, 4, 100),
    "queue full of 100 us": step_programs.burn(100),
}


@pytest.mark.parametrize("rival", [20, 200])
@pytest.mark.parametrize("program", FIRST_SEEN.values(), ids=FIRST_SEEN)
def test_costs_that_were_first_seen_beside_others_are_right_once_it_was_alone(
    world: World, program: Program, rival: int
) -> None:
    """Until then the shortest time of each counts, which is never less than its cost."""
    clients = (client(program), client(step_programs.burn(rival)))
    openings = (
        Opening(at_ms=0, open=("c0", "c1")),
        Opening(at_ms=400),
        Opening(at_ms=450, open=("c0",)),
        Opening(at_ms=800),
        Opening(at_ms=850, open=("c1",)),
        Opening(at_ms=1200),
        Opening(at_ms=1250, open=("c0", "c1")),
    )
    first = world.run(Case(clients=clients, openings=openings, settle_ms=100, measure_ms=200))
    later = world.run(Case(clients=clients, openings=openings, settle_ms=1300, measure_ms=500))
    for name in ("c0", "c1"):
        assert -EXACT <= off(first, name) <= 0.1
        assert abs(off(later, name)) <= EXACT


@pytest.mark.parametrize("beside", [False, True])
def test_no_stream_is_stopped_for_a_function_that_is_known(world: World, beside: bool) -> None:
    """To time it by itself, as is done now and then alone."""
    opening = ALL if beside else ALL.model_copy(update={"open": ("c0",)})
    case = one_by_one(step_programs.mixed((5, 1), (7, 1)), step_programs.burn(50), beside=opening, intervals=True)
    report = world.run(case)
    stops = [each for each, work in zip(report.intervals, report.works, strict=True) if work.kind == "host"]
    first_ns = report.steps[0]["now_ns"]
    late = [each for each in stops if each.name == "c0" and each.begin_ns > first_ns]
    assert bool(late) != beside


def test_what_others_do_is_not_learned_as_its_own(world: World) -> None:
    """After long beside others it knows its kernels as well as before."""
    program = step_programs.think(20, 8, 100)
    case = one_by_one(program, step_programs.burn(500), beside=ALL)
    ends_ms = case.openings[-1].at_ms + 1000
    openings = (*case.openings, Opening(at_ms=ends_ms), Opening(at_ms=ends_ms + APART_MS, open=("c0",)))
    again = case.model_copy(
        update={"openings": openings, "settle_ms": round(ends_ms) + 2 * APART_MS, "measure_ms": 200}
    )
    report = world.run(again)
    assert abs(off(report, "c0")) <= EXACT
