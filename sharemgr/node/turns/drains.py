"""What an allocation's drains were like: how long the next one is waited for, and whether one believes when it ends."""

from edgeshare.contract.units import NS_PER_MS
from sharemgr.node.turns.settings import Settings

LATE_NS = 2 * NS_PER_MS
"""What ends later than foretold by more than this, as a rule, is not foretold. By simulation (tests/virtual): with 65
clients, and 250 µs to go from one to the next, right ones are late by 1 ms; where the kernels of one function take now
so long, now so long, it is by tens."""
SLICES_LATE_MOST = 4
"""So many slices are the most that one drain counts as late: a process that was stopped is to be forgotten soon."""


class Drains:
    """Times in ns. A drain is from when the device was called back until all that was queued is done."""

    __slots__ = ("_late_ns", "_longest_ns", "_settings", "_usual_ns")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._usual_ns = 0  # the most of late: an excess fades by an eighth a drain
        self._longest_ns = 0  # that came to an end
        self._late_ns = 0  # how much later than foretold they end, as a rule

    def learn(self, drain_ns: int, late_ns: int) -> None:
        """Takes in a drain that has come to its end, so much later than foretold; not above 0 where it was not late, or
        not foretold."""
        drain_ns = min(drain_ns, self._settings.drain_most_ns)
        self._usual_ns = max(drain_ns, self._usual_ns - (self._usual_ns >> 3))
        self._longest_ns = max(drain_ns, self._longest_ns)
        self._late_ns += (max(0, min(late_ns, SLICES_LATE_MOST * self._settings.slice_ns)) - self._late_ns) >> 3

    def give_up(self) -> None:
        """One was not waited for to its end: none is taken for long from now on until it has come to its end."""
        self._usual_ns = self._longest_ns = 0

    def expected_ns(self, foretold_ns: int) -> int:
        """How long the next one may take: as long as usual, or what is foretold of it, where one has taken as long."""
        return max(self._usual_ns, min(foretold_ns, self._longest_ns))

    @property
    def are_foretold(self) -> bool:
        """Whether they end, as a rule, when that is foretold, or little later."""
        return self._late_ns <= LATE_NS
