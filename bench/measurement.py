"""What a measurement is, how much effort goes into each, and where they happen."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.report import Row
from bench.stage import Laboratory
from edgeshare.cli.demo_stage import open_stage

SCHEDULINGS = ("fifo", "timeslice")
"""How the simulated GPU orders the queued work of several contexts."""


@dataclass(frozen=True)
class Effort:
    """How often and for how long things are measured."""

    floor_runs: int
    floor_samples: int
    launch_runs: int
    launches: int
    pair_runs: int
    pair_s: float
    """Length of a run of two saturating clients."""
    alone_s: float
    share_runs: int
    share_s: float
    """Length of a run that shares are judged over, from its third second on."""
    share_window_s: float
    control_s: float
    """The same for a control, which misses by far."""
    control_window_s: float
    fault_runs: int
    """How often a holder is killed, and how often one goes idle."""


FULL = Effort(
    floor_runs=3,
    floor_samples=400,
    launch_runs=15,
    launches=200_000,
    pair_runs=3,
    pair_s=3,
    alone_s=2,
    share_runs=3,
    share_s=13,
    share_window_s=10,
    control_s=6,
    control_window_s=4,
    fault_runs=6,
)
QUICK = Effort(
    floor_runs=1,
    floor_samples=100,
    launch_runs=5,
    launches=100_000,
    pair_runs=1,
    pair_s=2,
    alone_s=1.5,
    share_runs=1,
    share_s=5,
    share_window_s=2,
    control_s=4,
    control_window_s=2,
    fault_runs=2,
)


class Bench:
    """Where measurements happen: one machine for each scheduling, made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._laboratories: dict[str, Laboratory] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def laboratory(self, scheduling: str) -> Laboratory:
        """The simulated machine of this scheduling, with its manager."""
        if scheduling not in self._laboratories:
            folder = self.folder / scheduling
            logs = folder / "logs"
            logs.mkdir(parents=True)
            stage = self._stack.enter_context(open_stage(folder, logs, scheduling))
            self._laboratories[scheduling] = Laboratory(stage)
        return self._laboratories[scheduling]


@dataclass(frozen=True)
class Measurement:
    """Something to measure that takes seconds, and its name for who waits."""

    name: str
    measure: Callable[[Bench], Sequence[Row]]
