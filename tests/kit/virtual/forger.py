"""Lies in the pages of clients: counters are changed where the manager reads them, as one that writes its own page
changes them. All else that such a client does is what a hook does."""

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from cuda_hook.gate import GatePages
from sharemgr.node.clients.server import AllocationServer
from tests.kit.virtual.cases.lies import LIES, Lie


class Forger:
    """One client's counters, each time that they are read."""

    def __init__(self, lie: Lie) -> None:
        self._lie = lie
        self._real_ns = 0
        self._said_ns = 0.0

    def forge(self, used: Any, now_ns: int) -> None:
        """Changes a ``struct es_used`` that was just read."""
        if not self._lie.moves:
            used.gpu_ns = used.drained_gpu_ns = used.idle_ns = used.idle_since_ns = used.pending_ns = used.queued = 0
            return
        part = self._lie.part(now_ns)
        self._said_ns += part * (used.gpu_ns - self._real_ns)
        self._real_ns = used.gpu_ns
        said_ns = max(0, int(self._said_ns) + self._lie.more_ns(now_ns))
        undrained_ns = int(part * (used.gpu_ns - used.drained_gpu_ns))
        used.idle_ns += int(self._real_ns - self._said_ns)
        used.gpu_ns, used.drained_gpu_ns = said_ns, max(0, said_ns - undrained_ns)
        used.pending_ns = int(part * used.pending_ns)


def forge(lies: Mapping[str, str], servers: Mapping[str, AllocationServer]) -> None:
    """From now on the manager reads these lies in the pages of the clients of allocations."""
    forgers: dict[GatePages, Forger] = {}
    read = GatePages.used

    def used(pages: GatePages, into: Any) -> None:
        read(pages, into)
        for name, lie in lies.items():
            if any(client.pages is pages for client in servers[name].clients.values()):
                forgers.setdefault(pages, Forger(LIES[lie])).forge(into, monotonic_ns())

    GatePages.used = used  # type: ignore[method-assign, assignment]
