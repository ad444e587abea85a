"""When an allocation must be looked at again."""

from collections.abc import Iterator
from heapq import heappop, heappush

from sharemgr.node.turns.contender import Contender


class Timers:
    """One timer for each allocation; what for, its phase says."""

    def __init__(self) -> None:
        # A heap. An entry stays in it until its time has come, also where its allocation has another timer by then.
        self._entries: list[tuple[int, int, Contender]] = []
        self._set = 0  # so that equal times are taken in the order in which they were set

    def set(self, contender: Contender, at_ns: int) -> None:
        """Sets the allocation's timer, in place of the one that it has."""
        contender.timer_ns = at_ns
        self._set += 1
        heappush(self._entries, (at_ns, self._set, contender))

    def next_ns(self) -> int | None:
        """The time of the first; None: there is none."""
        entries = self._entries
        while entries and entries[0][2].timer_ns != entries[0][0]:
            heappop(entries)
        return entries[0][0] if entries else None

    def due(self, now_ns: int) -> Iterator[Contender]:
        """Takes out the allocations whose time has come. Timers may be set and cleared meanwhile."""
        while self._entries and self._entries[0][0] <= now_ns:
            at_ns, _, contender = heappop(self._entries)
            if contender.timer_ns == at_ns:
                contender.timer_ns = -1
                yield contender
