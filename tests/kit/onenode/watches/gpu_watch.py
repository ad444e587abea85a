"""On which GPUs pods really compute, by the simulated driver alone: nothing of edgeshare is asked."""

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from simgpu.machine import Machine

LOOK_S = 0.02


class GpuWatch:
    """A context manager that looks again and again, in a thread of its own.

    Pods are known by the tag of their processes, of those that start from now on; ``percents`` says which part of each
    of its GPUs a pod asks for, and may grow."""

    def __init__(self, directory: Path, percents: Mapping[str, int]) -> None:
        self.seen: defaultdict[str, set[str]] = defaultdict(set)
        """Pod → the GPUs that its processes have had anything on."""
        self.peaks: Counter[str] = Counter()
        """GPU → the most that live processes on it asked for together, in percent."""
        self.at_peak: dict[str, list[str]] = {}
        """GPU → whose processes those were."""
        self._machine = Machine(directory)
        self._uuids = [gpu.uuid for gpu in self._machine.gpus()]
        # Processes that are over are known for long, and another run of a test gives the same tags.
        self._last_id = max((process.id for process in self._machine.processes()), default=-1)
        self._percents = percents
        self._stop = threading.Event()
        self._fault: Exception | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            while not self._stop.wait(LOOK_S):
                self._look()
            # Of what came since the last one, however late that was.
            self._look()
        except Exception as fault:
            self._fault = fault

    def _look(self) -> None:
        live = defaultdict(set)
        for process in self._machine.processes():
            if process.id <= self._last_id or process.tag not in self._percents:
                continue
            for uuid, *used in zip(self._uuids, process.memory_bytes, process.executed_ns, strict=True):
                if any(used):
                    self.seen[process.tag].add(uuid)
                    if process.alive:
                        live[uuid].add(process.tag)
        for uuid, pods in live.items():
            together = sum(self._percents[pod] for pod in pods)
            if together > self.peaks[uuid]:
                self.peaks[uuid], self.at_peak[uuid] = together, sorted(pods)
