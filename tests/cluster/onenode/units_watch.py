"""What the node's status says of its units, each time that it changes."""

import subprocess
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from edgeshare.names import GPU_PERCENT
from onenode.layout import NODE_NAME
from onenode.node import Node
from onenode.waiting import until

SAYS = f"{{.status.capacity.{GPU_PERCENT}}} {{.status.allocatable.{GPU_PERCENT}}}{{'\\n'}}"


@dataclass(frozen=True)
class Seen:
    """One look at the node."""

    at_s: float
    """By time.monotonic."""
    capacity: int
    allocatable: int


class UnitsWatch:
    """A context manager that notes every change of the Node object."""

    def __init__(self, node: Node) -> None:
        self.seen: list[Seen] = []
        self._command = node.kubectl_command("get", "node", NODE_NAME, "--watch", "-o", f"jsonpath={SAYS}")

    def __enter__(self) -> Self:
        self._kubectl = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        until(lambda: bool(self.seen), "the node is seen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubectl.terminate()
        self._kubectl.wait()
        self._reader.join()

    def until_allocatable(self, units: int) -> None:
        """Return when the node has said that so many can be given out."""
        until(lambda: self.seen[-1].allocatable == units, f"{units} units can be given out", look_s=0.01)

    def _read(self) -> None:
        assert self._kubectl.stdout is not None
        with self._kubectl.stdout:
            for line in self._kubectl.stdout:
                capacity, _, allocatable = line.strip().partition(" ")
                self.seen.append(Seen(time.monotonic(), int(capacity), int(allocatable)))
