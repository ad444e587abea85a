"""What a measurement is, how much effort goes into each, and where they happen."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.host import cpu_seconds
from bench.report import Row
from bench.stage import Laboratory
from simgpu.stage.stage import open_stage

SCHEDULINGS = ("fifo", "timeslice")
"""How the simulated GPU orders the queued work of several contexts."""


@dataclass(frozen=True)
class Effort:
    """How often and for how long things are measured."""

    floor_runs: int
    floor_samples: int
    launch_runs: int
    launch_pairs: int
    """Batches through the hook in one process, each with one past it."""
    allocation_runs: int
    allocation_pairs: int
    pair_runs: int
    pair_s: float
    """Length of a run of two saturating clients."""
    alone_s: float
    threads_runs: int
    threads_ms: int
    """Length of each phase of a program with two threads."""
    share_runs: int
    share_s: float
    """Length of a run that shares are judged over, from its third second on."""
    share_window_s: float
    control_s: float
    """Length of a run of a control, which misses by far."""
    control_window_s: float
    fault_runs: int
    """How often a holder is killed, how often one is stopped, and how often one goes idle."""
    drain_runs: int
    drains: int
    """How often a client is called back in one run."""
    latency_runs: int
    latency_s: float
    """Length of a run of the latency client: alone, and beside the other."""
    usage_runs: int
    usage_s: float
    gaps_runs: int
    gaps_s: float
    """Length of a run of programs that leave gaps."""
    gaps_settle_s: float
    """Of that, what is not judged: the manager learns who leaves gaps, and the hook what kernels cost."""
    crowd_runs: int
    crowd_s: float
    attack_runs: int
    attack_s: float
    """Length of a run beside hostile clients, from its second second on."""
    flood_runs: int
    flood_s: float
    """For how long the assigner is asked beside a flood."""
    placement_seeds: int
    replay_runs: int
    assigner_runs: int
    assigner_pods: int
    """That go through each phase of a run."""
    page_runs: int
    page_idle_s: float
    """For how long the page is served to nobody."""


FULL = Effort(
    floor_runs=3,
    floor_samples=400,
    launch_runs=5,
    launch_pairs=2_000,
    allocation_runs=5,
    allocation_pairs=200,
    pair_runs=3,
    pair_s=3.5,
    alone_s=1.2,
    threads_runs=5,
    threads_ms=1_000,
    share_runs=3,
    share_s=12.2,
    share_window_s=10,
    control_s=4,
    control_window_s=2,
    fault_runs=3,
    drain_runs=3,
    drains=120,
    latency_runs=3,
    latency_s=4.5,
    usage_runs=3,
    usage_s=3,
    gaps_runs=3,
    gaps_s=6,
    gaps_settle_s=2,
    crowd_runs=3,
    crowd_s=6.5,
    attack_runs=3,
    attack_s=5,
    flood_runs=3,
    flood_s=4,
    placement_seeds=10,
    replay_runs=3,
    assigner_runs=5,
    assigner_pods=600,
    page_runs=5,
    page_idle_s=60,
)
QUICK = Effort(
    floor_runs=1,
    floor_samples=100,
    launch_runs=2,
    launch_pairs=500,
    allocation_runs=2,
    allocation_pairs=50,
    pair_runs=1,
    pair_s=3.5,
    alone_s=1,
    threads_runs=1,
    threads_ms=500,
    share_runs=1,
    share_s=3.1,
    share_window_s=1,
    control_s=2.6,
    control_window_s=0.5,
    fault_runs=1,
    drain_runs=1,
    drains=30,
    latency_runs=1,
    latency_s=3,
    usage_runs=1,
    usage_s=2,
    gaps_runs=1,
    gaps_s=4,
    gaps_settle_s=2,
    crowd_runs=1,
    crowd_s=4,
    attack_runs=1,
    attack_s=3,
    flood_runs=1,
    flood_s=2,
    placement_seeds=1,
    replay_runs=1,
    assigner_runs=1,
    assigner_pods=400,
    page_runs=2,
    page_idle_s=10,
)


class Bench:
    """Where measurements happen: machines, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._laboratories: dict[tuple[str, int, str], Laboratory] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def managers_cpu_s(self) -> float:
        """Processor time that the managers of all machines have used."""
        return sum(cpu_seconds(laboratory.stage.manager.pid) for laboratory in self._laboratories.values())

    def laboratory(self, scheduling: str, gpus: int = 1, purpose: str = "all") -> Laboratory:
        """The simulated machine of this scheduling and so many GPUs for a purpose, with its manager."""
        key = (scheduling, gpus, purpose)
        if key not in self._laboratories:
            folder = self.folder / f"{scheduling}-{gpus}-{purpose}"
            logs = folder / "logs"
            logs.mkdir(parents=True)
            stage = self._stack.enter_context(open_stage(folder, logs, scheduling, gpus))
            self._laboratories[key] = Laboratory(stage)
        return self._laboratories[key]


@dataclass(frozen=True)
class Measurement:
    """Something to measure that takes seconds, and its name for who waits."""

    name: str
    measure: Callable[[Bench], Sequence[Row]]
