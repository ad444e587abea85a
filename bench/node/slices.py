"""Two saturating clients under the manager: how much of the GPU is kept, how fast it changes hands, how long one of
them waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench.figures import busy_percent, hand_overs_ns, longest_gap_ns, percentile
from bench.machine.floors import Floor
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Client, Run
from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US

SETTLE_NS = 2 * NS_PER_S
"""Start of a run that is left out: contexts are made, and what was queued before there was a rival runs."""

ALONE_SETTLE_NS = NS_PER_S // 2

NAMES = ("first", "second")

HAND_OVER_TARGET = Target(20)
RELAYS_TARGET = Target(3)
WAIT_TARGET = Target(50)
MARKERS_TARGET = Target(0.5)

RELAY_PAUSE_US = 2_500
"""Half a slice: each end of the relay sleeps about as long between two words as a client does between two grants."""


@dataclass(frozen=True)
class Load:
    """What both clients submit, and how much of a bare client's throughput they have to keep."""

    kernels: str
    text: str
    kept_percent: float
    hands_over: bool = False
    """Whether its hand-overs are judged."""


LOADS = (
    Load("100", "100 us", 98),
    Load("1000", "1 ms", 99, hands_over=True),
    Load("10000", "10 ms", 99),
    Load("20:95,5000:5", "95 % 20 us, 5 % 5 ms", 98),
)


def measurements(effort: Effort) -> list[Measurement]:
    """One for each scheduling and length of kernels."""
    return [
        Measurement(f"two clients, kernels of {load.text}, {scheduling}", partial(measure, effort, scheduling, load))
        for scheduling in SCHEDULINGS
        for load in LOADS
    ]


def measure(effort: Effort, scheduling: str, load: Load, bench: Bench) -> list[Row]:
    """One client alone without the hook, two with it, and the machine's own relay, in turn."""
    laboratory = bench.laboratory(scheduling)
    floor = Floor(bench.folder) if load.hands_over else None
    alone: list[Run] = []
    pairs: list[Run] = []
    relays_us: list[list[float]] = []
    for _ in range(effort.pair_runs):
        alone.append(laboratory.run([Client("bare", load.kernels)], effort.alone_s))
        pairs.append(laboratory.run([Client(name, load.kernels, percent=50) for name in NAMES], effort.pair_s))
        if floor:
            taken_ns = floor.relay_ns(effort.floor_samples, RELAY_PAUSE_US, python=False)
            relays_us.append([ns / NS_PER_US for ns in taken_ns])
    settings: dict[str, str | float] = {"kernels": load.text, "scheduling": scheduling}
    shared_percent = [busy_percent(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns) for run in pairs]
    alone_percent = [busy_percent(run.intervals, run.begin_ns + ALONE_SETTLE_NS, run.end_ns) for run in alone]
    rows = [
        Row(
            "throughput kept, two saturating clients",
            "%",
            [100 * shared / bare for shared, bare in zip(shared_percent, alone_percent, strict=True)],
            settings,
            with_edgeshare=shared_percent,
            without_edgeshare=alone_percent,
            target=Target(load.kept_percent, at_least=True),
        ),
        Row(
            "markers, at 1 us each",
            "% of the GPU's time",
            [run.markers_percent for run in pairs],
            settings,
            target=MARKERS_TARGET,
        ),
        Row("longest wait of a client with a 50 % request", "ms", waits_ms(pairs), settings, target=WAIT_TARGET),
    ]
    if relays_us:
        rows += hand_over_rows(pairs, relays_us, settings)
        rows.append(
            Row("manager's processor time", "% of a core", [run.manager_cpu_percent for run in pairs], settings)
        )
    return rows


def waits_ms(runs: Sequence[Run]) -> list[float]:
    """Of each run the longest time that either client ran nothing."""
    return [
        max(longest_gap_ns(run.intervals, name, run.begin_ns + SETTLE_NS, run.end_ns) for name in NAMES) / NS_PER_MS
        for run in runs
    ]


def hand_over_rows(
    pairs: Sequence[Run], relays_us: Sequence[Sequence[float]], settings: dict[str, str | float]
) -> list[Row]:
    """From the end of one client's last kernel to the begin of the other's first, beside the relay of the same run."""
    taken_us = [
        [gap_ns / NS_PER_US for gap_ns in hand_overs_ns(run.intervals, run.begin_ns + SETTLE_NS, run.end_ns)]
        for run in pairs
    ]
    rows = []
    for percent in (50, 99):
        hand_overs = [percentile(run, percent) for run in taken_us]
        relays = [percentile(run, percent) for run in relays_us]
        name = f"hand-over, p{percent}"
        target = HAND_OVER_TARGET if percent == 50 else None
        counted = settings | {"hand-overs": sum(map(len, taken_us))}
        rows.append(Row(name, "us", hand_overs, counted, hand_overs, relays, target))
        ratios = [ours / relay for ours, relay in zip(hand_overs, relays, strict=True)]
        rows.append(Row(f"{name}, in two-hop relays in C", "x", ratios, settings, target=RELAYS_TARGET))
    return rows
