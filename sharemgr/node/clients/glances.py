"""Which allocations have answers that wait for the driver, or processes that have just ended: what it says of their
processes is asked for at once, and again soon after, not only each second."""

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic_ns

from sharemgr.node.clients.dying import Listed
from sharemgr.node.clients.server import AllocationServer


class Glances:
    """The allocations that a glance is wanted for. Runs in the event loop's thread."""

    def __init__(self, servers: Mapping[str, AllocationServer]) -> None:
        """``servers`` are those of all allocations, by id, as they come and go."""
        self.wanted = asyncio.Event()
        """Set while there is such an allocation."""
        self._servers = servers
        self._ids: set[str] = set()
        self._begun: set[str] = set()
        self._began_at_ns = 0

    def want(self, allocation_id: str) -> None:
        """An answer of this allocation waits, or a process of it has ended."""
        self._ids.add(allocation_id)
        self.wanted.set()

    def begin(self) -> Sequence[str]:
        """The driver is about to be asked of these devices."""
        waiting = self._waiting()
        for server in waiting.values():
            server.terms.memory.look()
        self._begun = set(waiting)
        self._began_at_ns = monotonic_ns()
        return sorted({device_id for server in waiting.values() for device_id in server.terms.device_ids})

    def deliver(self, told: Listed) -> None:
        """Takes in what the driver said, and has answered what can be."""
        for allocation_id, server in self._waiting().items():
            # One that came since waits for the next one.
            if allocation_id in self._begun:
                server.glance(self._began_at_ns, told)
        self._waiting()

    def _waiting(self) -> dict[str, AllocationServer]:
        """The servers of allocations that still wait, by id."""
        waiting = {each: self._servers[each] for each in self._ids if each in self._servers}
        waiting = {each: server for each, server in waiting.items() if server.waits}
        self._ids = set(waiting)
        if not waiting:
            self.wanted.clear()
        return waiting
