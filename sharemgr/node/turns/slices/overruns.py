"""Those whose drains were waited for no more: what they ran on is theirs, and was charged to others who held the device
meanwhile in vain."""

from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.policy import Competition
from sharemgr.node.turns.settings import Settings

RUNS_ON_NS = Settings().drain_most_ns
"""As long as a drain is expected to be at most. What runs on for longer is not told from two that lie, of
whom one says in the end that the device was its all the time that the other one had it."""


class Overruns:
    """Of one device. What one says that it used after its drain was given up is taken off what others were charged for
    without having used it, and no more is: so nobody gains by saying too little who has no such neighbour, and nobody
    more than such a neighbour pays."""

    def __init__(self, competition: Competition) -> None:
        self.overlapping: list[Contender] = []
        """Those that still owe a release."""
        self._competition = competition
        self._running: dict[Contender, None] = {}  # those, and who takes part again without one
        self._left_ns = 0  # for so long what others hold may be in vain
        self._used_ns = 0  # by them since, and taken off nobody's charge yet
        self._vain_ns: dict[Contender, int] = {}  # what others were charged for since, and did not use

    def add(self, contender: Contender) -> None:
        """The contender's drain is waited for no more."""
        for other in [each for each in self._running if each is not contender and not each.runs_on]:
            del self._running[other]
        if not self._running:
            self._used_ns = 0
            self._vain_ns.clear()
        self._left_ns = RUNS_ON_NS
        self._running[contender] = None
        self.overlapping.append(contender)

    def clear(self) -> None:
        """Turns are over."""
        self.overlapping.clear()
        self._running.clear()

    def forgive(self, contender: Contender) -> None:
        """The contender owes no release any more, and what it queued may run on."""
        self.overlapping.remove(contender)

    def drained(self, contender: Contender) -> None:
        """All that it queued has ended, or it is gone."""
        if contender in self._running:
            del self._running[contender]
            if contender in self.overlapping:
                self.overlapping.remove(contender)
                self._take_off(contender.gpu_ns - contender.charged_ns)

    def charge(self, holder: Contender | None, elapsed_ns: int) -> None:
        """Time went by, in which somebody had the device."""
        if holder is not None and self.run_beside(holder):
            holder.beside_ns += min(elapsed_ns, self._left_ns)
        if holder is not None and self._running:
            self._left_ns -= elapsed_ns
        for contender in self.overlapping:
            self._competition.charge(contender, elapsed_ns)
            self._competition.cap_debt(contender)

    def run_beside(self, holder: Contender) -> bool:
        """Whether others may run while this one has the device."""
        return self._left_ns > 0 and len(self._running) > 0 and holder not in self._running

    def used(self, contender: Contender, used_ns: int) -> None:
        """The contender says that it used so much for which it was not charged."""
        if used_ns > 0:
            self._competition.charge_later(contender, used_ns)
            self._take_off(used_ns)

    def held(self, contender: Contender, vain_ns: int) -> None:
        """One has drained that was charged for so much without having used it."""
        vain_ns = min(vain_ns, contender.beside_ns)
        if vain_ns > 0:
            self._vain_ns[contender] = self._vain_ns.get(contender, 0) + vain_ns
            self._take_off(0)

    def forget(self, contender: Contender) -> None:
        """The contender was removed."""
        self._vain_ns.pop(contender, None)
        self._running.pop(contender, None)

    def _take_off(self, used_ns: int) -> None:
        self._used_ns = min(self._used_ns + max(0, used_ns), RUNS_ON_NS)
        for contender, vain_ns in self._vain_ns.items():
            back_ns = min(vain_ns, self._used_ns)
            self._vain_ns[contender] = vain_ns - back_ns
            self._used_ns -= back_ns
            self._competition.charge_later(contender, -back_ns)
