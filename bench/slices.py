"""Two saturating clients under the manager: how much of the GPU is kept, and how fast it changes hands."""

from functools import partial

from bench.figures import busy_percent, hand_overs_ns, percentile
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Run, Saturating
from edgeshare.units import NS_PER_S, NS_PER_US

KERNELS_US = (100, 1_000, 10_000)
HAND_OVER_KERNEL_US = 1_000
THROUGHPUT_TARGET = Target(97, at_least=True)
HAND_OVER_TARGET = Target(60)
SETTLE_NS = NS_PER_S
"""Start of a run that is left out: contexts are made, and what was queued before there was a rival runs."""


def measurements(effort: Effort) -> list[Measurement]:
    """One for each scheduling and length of kernels."""
    return [
        Measurement(
            f"two clients, {kernel_us} us kernels, {scheduling}",
            partial(measure, effort, scheduling, kernel_us),
        )
        for scheduling in SCHEDULINGS
        for kernel_us in KERNELS_US
    ]


def measure(effort: Effort, scheduling: str, kernel_us: int, bench: Bench) -> list[Row]:
    """One client alone without the hook and two with it, in turn."""
    laboratory = bench.laboratory(scheduling)
    alone, pairs = [], []
    for _ in range(effort.pair_runs):
        alone.append(laboratory.saturate([Saturating("bare", kernel_us)], effort.alone_s))
        two = [Saturating("first", kernel_us, percent=50), Saturating("second", kernel_us, percent=50)]
        pairs.append(laboratory.saturate(two, effort.pair_s))
    settings: dict[str, str | float] = {"scheduling": scheduling, "kernel_us": kernel_us}
    shared_percent = [busy_percent(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns) for run in pairs]
    alone_percent = [busy_percent(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns) for run in alone]
    rows = [
        Row(
            "throughput kept",
            "%",
            [100 * shared / bare for shared, bare in zip(shared_percent, alone_percent, strict=True)],
            settings,
            with_edgeshare=shared_percent,
            without_edgeshare=alone_percent,
            target=THROUGHPUT_TARGET,
        )
    ]
    if kernel_us == HAND_OVER_KERNEL_US:
        rows += hand_over_rows(pairs, settings)
        cpu_percent = [100 * run.manager_cpu_s * NS_PER_S / (run.end_ns - run.begin_ns) for run in pairs]
        rows.append(Row("manager's processor time, of a core", "%", cpu_percent, settings))
    return rows


def hand_over_rows(pairs: list[Run], settings: dict[str, str | float]) -> list[Row]:
    """From the end of one client's last kernel to the begin of the other's first; the floors have rows."""
    taken_us = [
        [gap_ns / NS_PER_US for gap_ns in hand_overs_ns(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns)]
        for run in pairs
    ]
    counted = {"hand_overs": sum(map(len, taken_us))}
    return [
        Row(
            "hand-over, p50",
            "us",
            [percentile(run, 50) for run in taken_us],
            settings | counted,
            target=HAND_OVER_TARGET,
        ),
        Row("hand-over, p99", "us", [percentile(run, 99) for run in taken_us], settings | counted),
    ]
