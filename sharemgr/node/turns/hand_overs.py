"""How long a device takes to go from one allocation to the next, and how long turns last for it. That time is nobody's:
nobody is charged for it."""

from statistics import median_low

from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.settings import Settings

MOST_PART = 10
"""Of a slice it is at most this part: who says more changes a share by no more than that. Embedded GPUs take 250 µs to
change between contexts, a twentieth."""
TURN = 40
"""A turn lasts for so many hand-overs, but for two slices at most: then a fortieth of the device is lost to them. By
simulation (random programs of tests/virtual): where a hand-over takes 250 µs, programs get less than 0.9 of what is due
to them by slices of 5 ms that do not by turns of 10 ms."""
LEAST_TURN = 12
"""A turn that another's waking ends has lasted for so many. By simulation (as above): with 10 a program that keeps the
device busy with short kernels has less than 0.9 of what is due to it, with 20 some that think two thirds of what they
have with 12."""


class HandOvers:
    """What those say who were handed the device. One alone is not believed, and of several the middle: who makes it
    longer than it is needs as many others that do."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._most_ns = settings.slice_ns // MOST_PART
        self._told_ns: dict[Contender, int] = {}
        self.usual_ns = 0
        """How long one takes."""

    def tell(self, contender: Contender, hand_over_ns: int) -> None:
        """Takes in what an allocation says; 0: it does not know."""
        if hand_over_ns and self._told_ns.get(contender) != hand_over_ns:
            self._told_ns[contender] = hand_over_ns
            self._look()

    def forget(self, contender: Contender) -> None:
        """The contender was removed."""
        if self._told_ns.pop(contender, 0):
            self._look()

    def unused_ns(self, contender: Contender) -> int:
        """Of the time that it is charged for since it was granted the device: how much the hand-over to it took. Never
        more than it did not use."""
        if not contender.handed_over or not contender.gpu_ns:
            return 0
        return max(0, min(self.usual_ns, contender.charged_ns - contender.gpu_ns))

    def slice_ns(self, drain_ns: int) -> int:
        """How long a slice lasts of one that drains for so long, as a rule, behind it."""
        turn_ns = min(TURN * self.usual_ns, 2 * self._settings.slice_ns)
        return max(self._settings.slice_ns, turn_ns - drain_ns)

    @property
    def anticipation_ns(self) -> int:
        """A: how long the device waits for one that thinks. To go to another and back would take as long."""
        told_ns = self._settings.anticipation_ns
        return max(told_ns, 2 * self.usual_ns) if told_ns else 0

    @property
    def least_turn_ns(self) -> int:
        """How long one that was granted the device has it before another's waking may end its turn."""
        return max(self._settings.least_turn_ns, LEAST_TURN * self.usual_ns)

    def _look(self) -> None:
        middle_ns = median_low(self._told_ns.values()) if len(self._told_ns) > 1 else 0
        self.usual_ns = min(middle_ns, self._most_ns)
