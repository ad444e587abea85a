"""Whether a holder has company on its device, and must keep its queue short for it."""

from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.limit import is_limited


class Rivals:
    """Who of a device's allocations has work, lately had some, or may come with some at any time."""

    def __init__(self, settings: Settings) -> None:
        self.latency_present = 0  # how many allocations of the latency class have clients
        self._lone_after_ns = settings.lone_after_ns
        self._busy = 0  # how many have work
        self._slept: Contender | None = None  # who ran out of work last
        self._slept_ns = -1
        self._slept_before_ns = -1  # when another than that one did

    def wake(self) -> None:
        """One has work that had none."""
        self._busy += 1

    def sleep(self, contender: Contender, now_ns: int) -> None:
        """One has no more work."""
        self._busy -= 1
        if self._slept is not contender:
            self._slept = contender
            self._slept_before_ns = self._slept_ns
        self._slept_ns = now_ns

    def forget(self, contender: Contender) -> None:
        """One that has no work was removed: it does not come back."""
        if self._slept is contender:
            self._slept = None
            self._slept_ns = self._slept_before_ns

    def contend(self, holder: Contender, now_ns: int) -> bool:
        """Whether the holder must keep its queue short: others have or lately had work, one of the latency class may
        come at any time, or its own limit is to be kept."""
        if self._busy > 1 or is_limited(holder) or self._latency_rivals(holder):
            return True
        return self.may_wake(holder, now_ns)

    def may_wake(self, holder: Contender, now_ns: int) -> bool:
        """Whether another lately slept, which may have work again at any time."""
        slept_ns = self._rival_slept_ns(holder)
        return slept_ns >= 0 and now_ns < slept_ns + self._lone_after_ns

    def contend_until_ns(self, holder: Contender) -> int | None:
        """When that ends by itself for one that is told to; None: not before something happens."""
        if self._busy > 1 or self._latency_rivals(holder):
            return None
        return self._rival_slept_ns(holder) + self._lone_after_ns

    def _latency_rivals(self, holder: Contender) -> bool:
        return self.latency_present > (1 if holder.latency else 0)

    def _rival_slept_ns(self, holder: Contender) -> int:
        return self._slept_before_ns if self._slept is holder else self._slept_ns
