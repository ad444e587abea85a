"""How long a device takes to go from one allocation to the next: nobody's time, which nobody is charged for."""

from statistics import median_low

from sharemgr.node.contender import Contender
from sharemgr.node.policy import Settings

MOST_PART = 10
"""Of a slice it is at most this part: who says more changes a share by no more than that. Embedded GPUs take 250 µs to
change between contexts, a twentieth."""


class HandOvers:
    """What those say who were handed the device. One alone is not believed, and of several the middle: who makes it
    longer than it is needs as many others that do."""

    def __init__(self, settings: Settings) -> None:
        self._most_ns = settings.slice_ns // MOST_PART
        self._told_ns: dict[Contender, int] = {}
        self._usual_ns = 0

    def tell(self, contender: Contender, hand_over_ns: int) -> None:
        """Takes in what an allocation says; 0: it does not know."""
        if hand_over_ns and self._told_ns.get(contender) != hand_over_ns:
            self._told_ns[contender] = hand_over_ns
            self._look()

    def forget(self, contender: Contender) -> None:
        """It was removed."""
        if self._told_ns.pop(contender, 0):
            self._look()

    def unused_ns(self, contender: Contender) -> int:
        """Of the time that it is charged for since it was granted the device: how much the hand-over to it took. Never
        more than it did not use."""
        if not contender.handed_over or not contender.gpu_ns:
            return 0
        return max(0, min(self._usual_ns, contender.charged_ns - contender.gpu_ns))

    def _look(self) -> None:
        middle_ns = median_low(self._told_ns.values()) if len(self._told_ns) > 1 else 0
        self._usual_ns = min(middle_ns, self._most_ns)
