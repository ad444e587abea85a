"""How long the requests of a client of the latency class take, on the virtual clock, beside others and by turns."""

from typing import Any

import pytest

from bench.figures import percentile
from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases.case import Case, Client
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.cases.step_programs import burn, periodic, think
from tests.kit.virtual.world import World

KERNELS, KERNEL_MS, PERIOD_MS = 8, 1, 50
MORE_MS = 1
"""What a request may take longer than its own kernels and one of each of the others, which nothing can interrupt: the
device may have begun several."""
REQUESTS = Client(program=periodic(1000 * KERNEL_MS, KERNELS, 1000 * PERIOD_MS), percent=30, latency=True)
RIVALS = {
    "kernels of 10 ms": ((70, burn(10_000)),),
    "kernels of 1 ms": ((70, burn(1000)),),
    "bursts of 20 us and kernels of 1 ms": ((30, think(20, 8, 400)), (40, burn(1000))),
    "bursts of 1 ms": ((35, think(1000, 4, 2000)), (35, think(1000, 1, 500))),
    "bursts of many": ((35, think(500, 16, 8000)), (35, think(400, 20, 9000))),
}


def taken_ms(report: Report) -> list[float]:
    """How long each request took, from when it was due to the end of its last kernel."""
    ends_ns = [each.end_ns for each in report.intervals if each.name == "c0"]
    period_ns = PERIOD_MS * NS_PER_MS
    last_ns = {end_ns // period_ns: end_ns for end_ns in sorted(ends_ns)}
    begin_ns = report.steps[0]["now_ns"]
    return [(end_ns - at * period_ns) / NS_PER_MS for at, end_ns in last_ns.items() if at * period_ns >= begin_ns]


def one_of_each_ms(case: Case) -> float:
    """What a kernel of each of the others takes."""
    _, *rivals = case.clients
    return sum(kernel.duration_ns for rival in rivals for kernel in rival.program.kernels) / NS_PER_MS


def most_ms(case: Case) -> float:
    """How long a request takes at most: its own kernels, one of each of the others, and a little."""
    return KERNELS * KERNEL_MS + one_of_each_ms(case) + MORE_MS


def ahead_ms(report: Report) -> list[float]:
    """For how long the others ran from when each request was due until its first kernel began."""
    period_ns = PERIOD_MS * NS_PER_MS
    begins_ns: dict[int, int] = {}
    for each in report.intervals:
        if each.name == "c0":
            at = each.begin_ns // period_ns
            begins_ns[at] = min(each.begin_ns, begins_ns.get(at, each.begin_ns))
    others = [each for each in report.intervals if each.name != "c0"]
    return [
        sum(max(0, min(each.end_ns, begin_ns) - max(each.begin_ns, at * period_ns)) for each in others) / NS_PER_MS
        for at, begin_ns in begins_ns.items()
        if at * period_ns >= report.steps[0]["now_ns"]
    ]


def beside(name: str, seen: bool, **more: Any) -> Case:
    """Requests beside rivals; ``seen``: several may be let in at once."""
    rivals = tuple(Client(program=program, percent=percent) for percent, program in RIVALS[name])
    return Case(clients=(REQUESTS, *rivals), settle_ms=2000, measure_ms=8000, intervals=True, seen=seen, **more)


SEEN = pytest.mark.parametrize("seen", [True, False], ids=["beside others", "by turns"])


@SEEN
@pytest.mark.parametrize("rivals", RIVALS)
def test_a_request_waits_for_the_kernel_that_runs_and_for_next_to_nothing_else(
    world: World, rivals: str, seen: bool
) -> None:
    case = beside(rivals, seen, scheduling="timeslice")
    taken = taken_ms(world.run(case))
    assert len(taken) >= 150
    assert percentile(taken, 99) <= most_ms(case)


@SEEN
@pytest.mark.parametrize("pace", ["plain", "workstation"])
def test_one_that_never_pauses_has_no_second_kernel_queued_that_would_go_first(
    world: World, pace: str, seen: bool
) -> None:
    """Whoever is put aside, the client's own thread among them, which makes its request longer."""
    case = beside("kernels of 10 ms", seen, scheduling="fifo", pace=pace, noise=2)
    report = world.run(case)
    ahead = ahead_ms(report)
    assert len(ahead) >= 150
    assert max(ahead) <= one_of_each_ms(case) + MORE_MS
    assert percentile(taken_ms(report), 95) <= most_ms(case)
