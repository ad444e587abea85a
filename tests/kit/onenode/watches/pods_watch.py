"""What becomes of pods, told when it happens."""

import queue
from dataclasses import dataclass

from tests.kit.onenode.node import Node
from tests.kit.onenode.watches.kubectl_watch import KubectlWatch

SAYS = "{.metadata.name} {.status.phase} {.status.reason} {.status.message}{'\\n'}"


@dataclass(frozen=True)
class End:
    """A pod that has ended."""

    pod: str
    succeeded: bool
    why: str
    """Reason and message of one that failed."""


class PodsWatch(KubectlWatch):
    """A context manager that tells of each pod of the namespace `default` that ends, at least once."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, "pods", template=SAYS, line=self._take)
        self._ends: queue.SimpleQueue[End] = queue.SimpleQueue()

    def next(self, timeout_s: float) -> End | None:
        """The next end; None where there is none for so long."""
        try:
            return self._ends.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _take(self, line: str) -> None:
        name, phase, why = [*line.split(" ", 2), "", ""][:3]
        if phase in ("Succeeded", "Failed"):
            self._ends.put(End(name, phase == "Succeeded", why))
