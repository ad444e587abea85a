"""What becomes of pods, told when it happens."""

import queue
import subprocess
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from onenode.node import Node

SAYS = "{.metadata.name} {.status.phase} {.status.reason} {.status.message}{'\\n'}"


@dataclass(frozen=True)
class End:
    """A pod that has ended."""

    pod: str
    succeeded: bool
    why: str
    """Reason and message of one that failed."""


class PodsWatch:
    """A context manager that tells of each pod of the namespace `default` that ends, at least once."""

    def __init__(self, node: Node) -> None:
        self._command = node.kubectl_command("get", "pods", "--watch", "-o", f"jsonpath={SAYS}")
        self._ends: queue.SimpleQueue[End] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._kubectl = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubectl.terminate()
        self._kubectl.wait()
        self._reader.join()

    def next(self, timeout_s: float) -> End | None:
        """The next end; None where there is none for so long."""
        try:
            return self._ends.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _read(self) -> None:
        assert self._kubectl.stdout is not None
        with self._kubectl.stdout:
            for line in self._kubectl.stdout:
                name, phase, why = [*line.strip().split(" ", 2), "", ""][:3]
                if phase in ("Succeeded", "Failed"):
                    self._ends.put(End(name, phase == "Succeeded", why))
