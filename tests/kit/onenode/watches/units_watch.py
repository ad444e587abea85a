"""What the node's status says of its units, each time that it changes."""

import time
from dataclasses import dataclass
from typing import Self

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.watches.kubectl_watch import KubectlWatch
from tests.kit.processes.waiting import until

SAYS = f"{{.status.capacity.{GPU_PERCENT}}} {{.status.allocatable.{GPU_PERCENT}}}{{'\\n'}}"


@dataclass(frozen=True)
class Seen:
    """One look at the node."""

    at_s: float
    """By time.monotonic."""
    capacity: int
    allocatable: int


class UnitsWatch(KubectlWatch):
    """A context manager that notes every change of the Node object."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, "node", NODE_NAME, template=SAYS, line=self._note)
        self.seen: list[Seen] = []

    def __enter__(self) -> Self:
        super().__enter__()
        until(lambda: bool(self.seen), "the node is seen")
        return self

    def until_allocatable(self, units: int) -> None:
        """Return when the node has said that so many can be given out."""
        until(lambda: self.seen[-1].allocatable == units, f"{units} units can be given out", look_s=0.01)

    def _note(self, line: str) -> None:
        capacity, _, allocatable = line.partition(" ")
        self.seen.append(Seen(time.monotonic(), int(capacity), int(allocatable)))
