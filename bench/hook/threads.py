"""A program whose two threads launch in turn, alone on the GPU: what of its rate is kept under the hook."""

import re
from dataclasses import dataclass
from functools import partial

from bench.hook.paired import build
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from edgeshare.contract.units import NS_PER_S

TARGET = Target(95, at_least=True)

PHASES = (
    "one thread",
    "two threads, kernels of their own",
    "one thread again",
    "two threads, the same kernels",
    "one thread once more",
)
"""Of turns.c, in their order."""

LAUNCHES = (16, 32, 16, 32, 16)
"""In a round of each."""

PERCENT = 60
"""Nobody else wants any."""

ENDED = re.compile(r"ended (\d+) rounds (\d+) ns (\d+) typical_ns (\d+) sleeps (\d+)")


@dataclass(frozen=True)
class Phase:
    """What turns.c says at the end of a phase."""

    number: int
    rounds: int
    ns: int
    typical_ns: int
    """Median time of a group of rounds."""
    sleeps: int
    """How often a thread slept in its launches."""

    @property
    def rounds_per_s(self) -> float:
        return self.rounds * NS_PER_S / self.ns

    @property
    def launches(self) -> int:
        return self.rounds * LAUNCHES[self.number]


def parse_end(line: str) -> Phase | None:
    """A line of turns.c that ends a phase; None for any other."""
    found = ENDED.match(line)
    return Phase(*map(int, found.groups())) if found else None


def measurements(effort: Effort) -> list[Measurement]:
    """One for all schedulings: with one client the GPU has nothing to order."""
    return [Measurement("two threads in turn", partial(measure, effort))]


def measure(effort: Effort, bench: Bench) -> list[Row]:
    """One program without the hook and with it, in turn."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    argv = [str(build("turns.c", bench.folder)), str(effort.threads_ms)]
    rates: dict[int | None, list[list[float]]] = {None: [], PERCENT: []}
    for _ in range(effort.threads_runs):
        for percent, taken in rates.items():
            ends = filter(None, map(parse_end, laboratory.lines("turns", argv, percent)))
            taken.append([phase.rounds_per_s for phase in ends])
    rows = []
    for number, name in enumerate(PHASES):
        bare, hooked = ([run[number] for run in rates[percent]] for percent in rates)
        kept = [100 * with_ / without for with_, without in zip(hooked, bare, strict=True)]
        rows.append(Row("rate kept, threads in turn", "%", kept, {"launch": name}, hooked, bare, TARGET))
    return rows
