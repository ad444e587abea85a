"""A GPU whose engines overlap: what runs beside what, exactly, on the virtual clock; with neither hook nor manager."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from tests.kit.virtual.cases.case import Case, Client, Kernel, Program, Step, Thread
from tests.kit.virtual.cases.random_case import random_case
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

BLOCKS = 40 * 8
"""What a T4 holds at a time."""
LAUNCH_NS = 2000
"""As in simgpu/machine/engine/engine.h; so is what follows."""
TURN_NS = 2 * MS
BYTES = 1 << 16
COPY_NS = 1000 + BYTES // 12
"""What so many bytes take over the bus."""

STREAMS = range(1, 4)


def run(
    world: World, *steps: Sequence[Step], blocks: int = 1, kernels_ms: Sequence[int] = (10, 10, 10), **more: object
) -> Report:
    """Runs threads to their ends; kernel n is of so many ms."""
    kernels = tuple(Kernel(duration_ns=ms * MS, function=n, blocks=blocks) for n, ms in enumerate(kernels_ms))
    program = Program(kernels=kernels, threads=tuple(Thread(steps=(*each, Step(kind="end"))) for each in steps))
    settings = {"overlap": True, "hooked": False, "intervals": True, "settle_ms": 100, "measure_ms": 100} | more
    return world.run(Case(clients=(Client(program=program, percent=50),), **settings))  # type: ignore[arg-type]


def launch(kernel: int, stream: int, count: int = 1) -> Step:
    return Step(kind="launch", object=kernel, stream=stream, count=count)


def spans(report: Report, kind: str = "kernel") -> list[tuple[int, int]]:
    """When each entry of a kind began and ended, in the order in which they were queued."""
    found: dict[int, tuple[int, int]] = {}
    for interval, work in zip(report.intervals, report.works, strict=True):
        if work.kind == kind:
            begin_ns, _ = found.get(work.entry, (interval.begin_ns, 0))
            found[work.entry] = begin_ns, interval.end_ns
    return [found[entry] for entry in sorted(found)]


def union_ns(spans: Sequence[tuple[int, int]]) -> int:
    """How long at least one of them is."""
    total = end = 0
    for begin_ns, end_ns in sorted(spans):
        total += max(0, end_ns - max(begin_ns, end))
        end = max(end, end_ns)
    return total


def executed_ns(report: Report) -> int:
    return int(report.steps[-1]["executed_ns"]["c0"])


@pytest.mark.parametrize(("blocks", "together"), [(1, 3), (BLOCKS // 3, 3), (BLOCKS // 2, 2), (BLOCKS, 1)])
def test_kernels_run_side_by_side_while_their_blocks_fit(world: World, blocks: int, together: int) -> None:
    report = run(world, [launch(0, stream) for stream in STREAMS], blocks=blocks)
    first, *others = spans(report)
    assert sum(begin_ns < first[1] for begin_ns, _ in others) == together - 1
    assert all(end_ns - begin_ns == 10 * MS for begin_ns, end_ns in spans(report))
    assert executed_ns(report) == union_ns(spans(report))


def test_without_the_setting_nothing_overlaps(world: World) -> None:
    report = run(world, [launch(0, stream) for stream in STREAMS], overlap=False)
    assert all(after == before for (_, before), (after, _) in pairwise(spans(report)))


def test_one_stream_is_in_order(world: World) -> None:
    report = run(world, [launch(0, 1), launch(1, 1), launch(2, 1)])
    assert all(after == before for (_, before), (after, _) in pairwise(spans(report)))


def test_a_kernel_that_waits_for_room_is_not_passed(world: World) -> None:
    kernels = tuple(Kernel(duration_ns=10 * MS, function=n, blocks=blocks) for n, blocks in enumerate((1, BLOCKS, 1)))
    program = Program(
        kernels=kernels, threads=(Thread(steps=(*(launch(n, n + 1) for n in range(3)), Step(kind="end"))),)
    )
    case = Case(
        clients=(Client(program=program, percent=50),), overlap=True, hooked=False, intervals=True, settle_ms=100
    )
    small, large, last = spans(world.run(case))
    assert (large[0], last[0]) == (small[1], large[1])


def test_copies_of_each_direction_have_an_engine(world: World) -> None:
    steps = [Step(kind="alloc", object=0, amount=BYTES), Step(kind="fill", object=0, stream=1, amount=BYTES)]
    steps += [Step(kind="wait"), launch(0, 1)]
    steps += [Step(kind="fetch", object=0, stream=stream, amount=BYTES) for stream in (2, 3)]
    steps += [Step(kind="upload", object=0, amount=BYTES)]
    report = run(world, steps, blocks=BLOCKS)
    ((begin_ns, end_ns),) = spans(report)
    copies = spans(report, "copy")
    # The blocking one is of the default stream, which the others ignore.
    down, down_after, up = copies
    assert all(begin_ns < copy[0] and copy[1] < end_ns and copy[1] - copy[0] == COPY_NS for copy in copies)
    assert down_after[0] == down[1]
    assert up[0] < down_after[1]


def test_a_stream_waits_for_another_ones_event(world: World) -> None:
    steps = [launch(0, 1), Step(kind="record", object=0, stream=1), launch(1, 1)]
    steps += [Step(kind="order", object=0, stream=2), launch(2, 2)]
    before, beside, behind = spans(run(world, steps))
    assert behind[0] == before[1] == beside[0]


def test_an_event_is_done_when_its_stream_has_come_to_it(world: World) -> None:
    steps = [launch(0, 1), launch(1, 2), Step(kind="record", object=0, stream=2), Step(kind="wait_event", object=0)]
    long, short, after = spans(run(world, [*steps, launch(2, 3)], kernels_ms=(30, 10, 1)))
    assert short[1] < after[0] < long[1]


QUEUE = 1024
"""Entries that a context may have queued (simgpu/machine/layout.h)."""


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            [Step(kind="renew_stream", stream=1, amount=1), launch(0, 1), launch(1, 0), Step(kind="wait_stream")],
            id="a stream that is behind another",
        ),
        pytest.param([launch(2, 1), launch(0, 3), launch(1, 2, QUEUE + 100)], id="room behind what is not done yet"),
    ],
)
def test_who_waits_sleeps_meanwhile(world: World, steps: Sequence[Step]) -> None:
    """Also where what is waited for is short, or done, and only others are long: else one looks without end."""
    durations_ns = (100 * MS, 2000, MS)
    kernels = tuple(Kernel(duration_ns=duration_ns, function=n) for n, duration_ns in enumerate(durations_ns))
    program = Program(kernels=kernels, threads=(Thread(steps=(*steps, Step(kind="end"))),))
    case = Case(clients=(Client(program=program, percent=50),), overlap=True, hooked=False, settle_ms=200)
    report = world.run(case)
    assert report.clients["c0"]["running"] == 0
    assert report.points_of["c0"] < 10 * sum(step.count for step in steps) + 1000


def test_the_default_stream_and_blocking_ones_wait_for_each_other(world: World) -> None:
    made = [Step(kind="renew_stream", stream=stream, amount=1) for stream in (1, 2)]
    steps = [launch(0, 1), launch(0, 2), launch(1, 0), launch(2, 1), launch(2, 3)]
    one, other, default, behind, ignores = spans(run(world, [*made, *steps]))
    assert other[0] < one[1]
    assert default[0] == max(one[1], other[1])
    assert behind[0] == default[1]
    assert ignores[0] < one[1]


def test_to_wait_for_the_default_stream_is_to_wait_for_blocking_ones_and_orders_nothing(world: World) -> None:
    made = [Step(kind="renew_stream", stream=stream, amount=1) for stream in (1, 2)]
    waits = [*made, launch(0, 1), launch(1, 3), Step(kind="wait_stream", stream=0), launch(2, 2)]
    blocking, ignored, after = spans(run(world, waits, kernels_ms=(10, 30, 1)))
    assert blocking[1] < after[0] < ignored[1]
    asks = [*made, launch(0, 1), Step(kind="record", object=0, stream=0), launch(1, 2)]
    asked = spans(run(world, asks))
    assert asked[1][0] < asked[0][1]


def test_what_is_paused_at_a_turns_end_goes_on_side_by_side(world: World) -> None:
    program = Program(
        kernels=(Kernel(duration_ns=5 * MS),),
        threads=(Thread(steps=(launch(0, 1), launch(0, 2), Step(kind="end"))),),
    )
    clients = (Client(program=program, percent=50),) * 2
    case = Case(clients=clients, overlap=True, hooked=False, intervals=True, scheduling="timeslice", settle_ms=100)
    report = world.run(case)
    for name in case.names:
        own = [(each.begin_ns, each.end_ns) for each in report.intervals if each.name == name]
        assert sum(end_ns - begin_ns for begin_ns, end_ns in own) == 10 * MS
        # The second one may have come a little later.
        assert 5 * MS <= report.steps[-1]["executed_ns"][name] == union_ns(own) < 5 * MS + TURN_NS
        assert max(end_ns - begin_ns for begin_ns, end_ns in own) <= TURN_NS
    assert_one_context_at_a_time(report)


def assert_one_context_at_a_time(report: Report) -> None:
    edges = sorted((each.begin_ns, each.end_ns, each.name) for each in report.intervals if each.begin_ns < each.end_ns)
    ends = {}
    for begin_ns, end_ns, name in edges:
        assert all(begin_ns >= until_ns for other, until_ns in ends.items() if other != name), report.case.line()
        ends[name] = max(end_ns, ends.get(name, 0))


def by_stream(report: Report) -> Iterator[list[tuple[int, int, int]]]:
    """Of each client's streams, in the order of the log: number, begin and end."""
    found: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for interval, work in zip(report.intervals, report.works, strict=True):
        if work.kind != "host":
            key = interval.name, work.stream
            found.setdefault(key, []).append((work.entry, interval.begin_ns, interval.end_ns))
    yield from found.values()


@pytest.mark.parametrize("number", [pytest.param(n, marks=() if n < 12 else pytest.mark.whole) for n in range(120)])
def test_random_programs_are_in_order_and_their_time_is_counted_once(world: World, number: int) -> None:
    update = {"overlap": True, "hooked": False, "intervals": True, "settle_ms": 0, "measure_ms": 300}
    report = world.run(random_case(number).model_copy(update=update))
    assert report.intervals
    assert_one_context_at_a_time(report)
    for entries in by_stream(report):
        for (number_before, _, end_ns), (number_after, begin_ns, _) in pairwise(entries):
            assert number_before <= number_after, report.case.line()
            assert end_ns <= begin_ns, report.case.line()
    for name in report.case.names:
        own = [(each.begin_ns, each.end_ns) for each in report.intervals if each.name == name]
        # What runs at the end is not in the log yet, nor what ran since the log was read.
        unlogged_ns = running_ns(report) + report.steps[-1]["now_ns"] - report.intervals[-1].end_ns
        executed = report.steps[-1]["executed_ns"][name]
        assert union_ns(own) <= executed <= union_ns(own) + unlogged_ns, report.case.line()
        assert report.clients[name]["error"] == 0, report.case.line()


def running_ns(report: Report) -> int:
    """The most that can run at the end."""
    return max(kernel.duration_ns for client in report.case.clients for kernel in client.program.kernels) * 2
