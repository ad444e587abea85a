"""The GPU time that the manager reports, against what was executed."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import MARKER_NS, SPARE_S, Client, Laboratory, pausing, sleep_until_ns
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from simgpu.stage.programs import begin_together

TARGET = Target(2)
MARKERS_TARGET = Target(0.5)

REPORTED_WITHIN_S = 0.5
"""After the end of its work: a hook reports each 100 ms, and when it gives a slice back."""

HALF = 50


@dataclass(frozen=True)
class Work:
    """What the measured client does."""

    text: str
    kernels: str
    arguments: tuple[str, ...] = ()


def bursts(text: str, kernel_us: int, count: int, think_us: int, *more: str) -> Work:
    """Bursts of ``count`` kernels, each with a wait for them and a pause after it."""
    return Work(text, str(kernel_us), (*pausing(count, think_us), *more))


WORKS = (
    bursts("bursts of 1 ms (1 kernel)", 1_000, 1, 3_000),
    bursts("bursts of 1 ms (10 kernels)", 100, 10, 3_000),
    bursts("bursts of 10 ms", 1_000, 10, 20_000),
    bursts("bursts of 100 ms", 1_000, 100, 50_000),
    bursts("bursts of 1 s", 10_000, 100, 100_000),
    bursts("graphs of 20 kernels of 100 us", 100, 1, 1_000, "--graph", "20"),
    bursts("kernels of 20 us, each waited for", 20, 1, 100),
    bursts("kernels of 100 us, each waited for", 100, 1, 0),
    bursts("bursts of 300 us (3 kernels)", 100, 3, 1_000),
    Work("kernels of 1 ms without a pause", "1000"),
    Work("95 % of 20 us, 5 % of 5 ms, without a pause", "20:95,5000:5"),
)

RIVAL = Client("rival", "1000", percent=HALF)


def measurements(effort: Effort) -> list[Measurement]:
    """Each alone, where scheduling is all one, and beside another."""
    return [Measurement(f"GPU time, {work.text}", partial(measure, effort, work)) for work in WORKS]


@dataclass(frozen=True)
class Taken:
    """What was measured of one run."""

    reported_ns: float
    executed_ns: int
    markers: int


def measure(effort: Effort, work: Work, bench: Bench) -> list[Row]:
    """The client runs for a while and stops; what is reported of it then is compared."""
    laboratories = [bench.laboratory(scheduling) for scheduling in SCHEDULINGS]
    alone, beside = [], []
    with ThreadPoolExecutor(max_workers=len(laboratories)) as pool:
        for _ in range(effort.usage_runs):
            alone.append(use(effort, work, False, laboratories[0]))
            beside.append(list(pool.map(partial(use, effort, work, True), laboratories)))
    rows = [*rows_of(effort, work, {"beside": "nobody"}, alone)]
    for scheduling, runs in zip(SCHEDULINGS, zip(*beside, strict=True), strict=True):
        rows += rows_of(effort, work, {"beside": "1 ms kernels", "scheduling": scheduling}, runs)
    return rows


def rows_of(effort: Effort, work: Work, settings: dict[str, str | float], runs: Sequence[Taken]) -> list[Row]:
    """What was reported, and what knowing it took."""
    settings = {"work": work.text, **settings}
    return [
        Row(
            "GPU time reported, off what was executed",
            "%",
            [abs(100 * (taken.reported_ns - taken.executed_ns) / taken.executed_ns) for taken in runs],
            settings,
            with_edgeshare=[taken.reported_ns / NS_PER_MS for taken in runs],
            without_edgeshare=[taken.executed_ns / NS_PER_MS for taken in runs],
            target=TARGET,
            note="with: ms reported; without: ms executed",
        ),
        Row(
            "markers, at 1 us each",
            "% of the GPU's time",
            [100 * taken.markers * MARKER_NS / (effort.usage_s * NS_PER_S) for taken in runs],
            settings,
            target=MARKERS_TARGET,
        ),
    ]


def use(effort: Effort, work: Work, beside: bool, laboratory: Laboratory) -> Taken:
    """One run."""
    machine = laboratory.stage.machine
    pause = ("--idle-from", str(effort.usage_s), "--idle-until", str(effort.usage_s + SPARE_S))
    measured = Client("measured", work.kernels, percent=HALF, arguments=(*work.arguments, *pause))
    seconds = effort.usage_s + SPARE_S
    allocation = laboratory.allocation(measured.name, HALF)
    cursor = machine.cursor(0)
    with ExitStack() as stack:
        rivals = [stack.enter_context(laboratory.client(RIVAL, RIVAL.argv_told(seconds)))] if beside else []
        before_ns = time.monotonic_ns()
        more = stack.enter_context(laboratory.held(allocation))
        opened_ns = (before_ns + time.monotonic_ns()) // 2
        program = stack.enter_context(laboratory.started(measured.name, measured.argv_told(seconds), more))
        begin_ns = begin_together([program, *rivals])
        sleep_until_ns(begin_ns + round(effort.usage_s * NS_PER_S))
        wait_until_idle(laboratory, measured.name)
        status = laboratory.stage.client.status()
        age_ns = time.monotonic_ns() - opened_ns
        program.check()
        intervals = laboratory.executed(0, cursor)
        markers = laboratory.markers({measured.name})
    mine = next(each for each in status.allocations if each.allocation.id == allocation.id)
    # A percentage is of the window, or of the allocation's life where that is shorter.
    reported_ns = mine.gpu_percent / 100 * min(status.window_ns, age_ns)
    executed_ns = sum(each.end_ns - each.begin_ns for each in intervals if each.name == measured.name)
    return Taken(reported_ns, executed_ns, markers)


def wait_until_idle(laboratory: Laboratory, name: str) -> None:
    """Returns when all that a client executed is reported: its last burst may be a long one."""
    before_ns = -1
    while (executed_ns := laboratory.stage.machine.executed_ns(0)[name]) != before_ns:
        before_ns = executed_ns
        # The machine's counters wake nobody, and what is not reported yet has to be within this time.
        time.sleep(REPORTED_WITHIN_S)
