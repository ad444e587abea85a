"""The figures of the README's table that the virtual clock can take: rows, and how each is measured."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import cast

from bench.figures import hand_overs_ns, longest_gap_ns, percentile
from bench.measurement import SCHEDULINGS
from bench.node.usage import WORKS, Work
from simgpu.paces import PACES as MACHINES
from simgpu.stage.executed import Interval
from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program, Scheduling, Step, Thread
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.figures import overlapping, thinking
from tests.kit.virtual.figures.bound import longest_wait_ns
from tests.kit.virtual.figures.grid import ROWS as SHARES
from tests.kit.virtual.figures.grid import WINDOW_S, virtual

Run = Callable[[Case], Report]

SEEDS = (1, 2)
BESIDE = ("nobody", *SCHEDULINGS)
LIMITS = (10, 30, 60, 90)
LENGTHS_US = (20, 100, 1000, 10_000)
PAIRED_US = (100, 1000, 10_000)


@dataclass(frozen=True)
class Figure:
    """Rows by name, what is measured of each with a seed, and how large that may be at most."""

    rows: tuple[str, ...]
    measure: Callable[[Run, str, int], float]
    target: float
    usual: tuple[str, ...] = ()
    """Those of `make test`, where it is not all of them."""


def covering(rows: Iterable[str], *sizes: int) -> tuple[str, ...]:
    """Of the rows of a product of factors of these sizes, in its order (the last factor goes round fastest), the part
    that takes the smallest factor's values in turn, by the places of the others: any two values of different factors
    still meet in it. Raises ValueError for rows that are not such a product's."""
    least = sizes.index(min(sizes))
    places = product(*map(range, sizes))
    return tuple(
        row
        for row, place in zip(rows, places, strict=True)
        if (sum(place) - place[least]) % sizes[least] == place[least]
    )


def _share_error(run: Run, row: str, seed: int) -> float:
    case, scheduling, pace = SHARES[row]
    report = run(virtual(case, scheduling, pace, seed))
    if case.by_held_time:
        return report.worst_held_error_percent(WINDOW_S)
    return report.worst_share_error_percent(WINDOW_S, of_executed=case.lent)


def work_program(work: Work) -> Program:
    """What burn does with the arguments of one of the bench's works."""
    options = dict(zip(work.arguments[::2], work.arguments[1::2], strict=True))
    if not options:
        weighed = [
            (float(us), int(weight or 1)) for us, _, weight in (p.partition(":") for p in work.kernels.split(","))
        ]
        return step_programs.mixed(*weighed)
    count = int(options["--sync-every"])
    if "--graph" in options:
        begin = [Step(kind="capture", stream=1, count=int(options["--graph"]))]
        steps = [Step(kind="graph", stream=1, count=count), Step(kind="wait_stream", stream=1)]
    else:
        begin, steps = [], [Step(kind="launch", count=count), Step(kind="wait_stream")]
    steps.append(Step(kind="think", amount=round(float(options["--think-us"]) * 1000)))
    kernels = step_programs.kernels(float(work.kernels))
    return Program(kernels=kernels, threads=(Thread(steps=(*begin, *steps, Step(kind="round")), again=len(begin)),))


SHORT = {
    "kernels of 2 us without a pause": step_programs.burn(2),
    "kernels of 5 us, 64 at a time": step_programs.burn(5, wait_every=64),
    "bursts of 20 us (4 kernels)": step_programs.think(5, 4, 50),
    "graphs of 4 kernels of 2 us": step_programs.graphs(2, 4),
    "kernels of 5 us of two threads in turn": step_programs.phases([5] * 8, "own"),
}
"""What the device has done sooner than the host has submitted it."""

TIMED = {**{work.text: work_program(work) for work in WORKS}, **SHORT}
GPU_TIMES: Mapping[str, tuple[Program, str, str]] = {
    f"{name}, beside {beside}, {pace}": (program, beside, pace)
    for pace, (name, program), beside in product(PACES, TIMED.items(), BESIDE)
}


def _gpu_time_error(run: Run, row: str, seed: int) -> float:
    program, beside, pace = GPU_TIMES[row]
    clients = [Client(program=program, percent=50)]
    if beside != "nobody":
        clients.append(Client(program=step_programs.burn(1000), percent=50))
    scheduling = beside if beside != "nobody" else "fifo"
    # In all less than a window: what is told is of all that was executed.
    case = Case(clients=tuple(clients), seed=seed, pace=pace, scheduling=cast(Scheduling, scheduling), measure_ms=8000)
    return abs(run(case).gpu_error_percent("c0"))


TO_LIMIT = {
    **{f"kernels of {us} us": step_programs.burn(us) for us in LENGTHS_US},
    **{f"kernels of {us} us, each waited for": step_programs.wait_each(us) for us in (1000, 10_000)},
    "graphs of 20 kernels of 100 us": step_programs.graphs(100, 20),
    "95 % of 20 us, 5 % of 5 ms": step_programs.mixed((20, 95), (5000, 5)),
    "four streams of four threads": step_programs.streams(1000, 4, 4),
    "two threads in turn": step_programs.turns([100] * 8, 2),
}
LIMITED: Mapping[str, tuple[int, Program, str]] = {
    f"limit {limit}, {name}, {pace}": (limit, program, pace)
    for pace, limit, (name, program) in product(PACES, LIMITS, TO_LIMIT.items())
}


def _limit_error(run: Run, row: str, seed: int) -> float:
    """How far a program that could use more is from its limit, on either side."""
    limit, program, pace = LIMITED[row]
    client = Client(program=program, percent=min(limit, 50), limit=limit)
    report = run(Case(clients=(client,), seed=seed, pace=pace, settle_ms=2000, measure_ms=WINDOW_S * 1000))
    return abs(report.busy_percent("c0") - limit)


PAIRS = {
    f"kernels of {us} us, {scheduling}, {pace}": (us, scheduling, pace)
    for pace, us, scheduling in product(PACES, PAIRED_US, SCHEDULINGS)
}
PAIRS_PART = covering(PAIRS, len(PACES), len(PAIRED_US), len(SCHEDULINGS))


def _pair(run: Run, row: str, seed: int, percents: tuple[int, ...] = (50, 50)) -> Report:
    us, scheduling, pace = PAIRS[row]
    clients = tuple(Client(program=step_programs.burn(us), percent=percent) for percent in percents)
    return run(Case(clients=clients, seed=seed, pace=pace, scheduling=cast(Scheduling, scheduling), intervals=True))


def _hand_over_us(run: Run, row: str, seed: int) -> float:
    """Beyond what the GPU itself takes to change from one context to the other."""
    _, _, pace = PAIRS[row]
    machine = MACHINES.get(PACES[pace].machine or "")
    switch_ns = machine.context_switch_ns if machine else 0
    return (percentile(hand_overs_ns(*_judged(_pair(run, row, seed))), 50) - switch_ns) / 1000


def _wait_of_bound(run: Run, row: str, seed: int) -> float:
    """The longest wait of any client as a part of the rule's bound."""
    percents = (60, 30, 10)
    report = _pair(run, row, seed, percents)
    us, _, pace = PAIRS[row]
    intervals, begin_ns, end_ns = _judged(report)
    return max(
        longest_gap_ns(intervals, name, begin_ns, end_ns) / longest_wait_ns(us * 1000, percent, pace)
        for name, percent in zip(report.case.names, percents, strict=True)
    )


def _judged(report: Report) -> tuple[tuple[Interval, ...], int, int]:
    return report.intervals, int(report.steps[0]["now_ns"]), int(report.steps[-1]["now_ns"])


OVERLAPPING_PART = covering(overlapping.ROWS, len(PACES), len(overlapping.PROGRAMS), len(overlapping.BESIDE))

FIGURES = {
    "share error, points": Figure(tuple(SHARES), _share_error, 0.5),
    "GPU time told, off what was executed, %": Figure(
        tuple(GPU_TIMES), _gpu_time_error, 2, covering(GPU_TIMES, len(PACES), len(TIMED), len(BESIDE))
    ),
    "executed off the limit, points": Figure(
        tuple(LIMITED), _limit_error, 1, covering(LIMITED, len(PACES), len(LIMITS), len(TO_LIMIT))
    ),
    "hand-over, p50, us": Figure(tuple(PAIRS), _hand_over_us, 20, PAIRS_PART),
    "longest wait, of the rule's bound": Figure(tuple(PAIRS), _wait_of_bound, 1, PAIRS_PART),
    "of streams beside each other, work that is missing, %": Figure(
        tuple(overlapping.ROWS), overlapping.lost_percent, 10, OVERLAPPING_PART
    ),
    "of streams beside each other, GPU time told, off the time they ran, %": Figure(
        tuple(overlapping.RIVALS), overlapping.gpu_time_error_percent, 2
    ),
    "beside such streams, a rival's longest wait, of the rule's bound": Figure(
        tuple(overlapping.RIVALS), overlapping.rivals_wait, 1
    ),
    "of what is due, programs that think or their rivals lack, %": Figure(
        tuple(thinking.ROWS), thinking.missing_percent, 5
    ),
}


def measured(run: Run, name: str, row: str, seed: int) -> float:
    """A figure's value."""
    return FIGURES[name].measure(run, row, seed)
