"""Who lets pods onto the card, without a policy: what is compared with, and what can be had at most."""

from collections.abc import Callable, Sequence
from math import inf

from sharemgr.replay.engines import CARD_GIB
from sharemgr.replay.world import Pod

HAND_OVER_S = 16.0
"""Between two pods that have the card one after the other: the published runs show 6 to 28 s."""
AFTER_BIND_S = 5.0
"""The published policies rest so long after a bind, so that a sample can come."""

Fits = Callable[[Pod, Sequence[Pod]], bool]
"""Whether a pod may come to those that are there."""
Order = Callable[[Pod], tuple[float, float]]


def largest_first(pod: Pod) -> tuple[float, float]:
    """By what is declared, as the published policies take them; before them those that borrow nothing, so that what is
    guaranteed is not lent just before it is asked for."""
    return pod.borrows, -pod.engine.limit_mib


def first_come(pod: Pod) -> tuple[float, float]:
    """As kube-scheduler takes pods of one priority."""
    return pod.queued_at_s, 0


class Admission:
    """Lets in the first of the queue that fits; one that does not holds up nobody."""

    def __init__(self, fits: Fits, order: Order, after_bind_s: float = 0.0, gap_s: float = 0.0) -> None:
        self._fits, self._order = fits, order
        self.after_bind_s = after_bind_s
        self._gap_s = gap_s
        self._there: list[Pod] = []
        self._free_s = 0.0
        """When the gap after the last pod is over."""
        self._until_s = inf

    def pick(self, queue: Sequence[Pod], now_s: float) -> Pod | None:
        """See simulation.Admission."""
        self._until_s = self._free_s if now_s < self._free_s else inf
        if now_s < self._free_s:
            return None
        return next((pod for pod in sorted(queue, key=self._order) if self._fits(pod, self._there)), None)

    def until_s(self) -> float:
        """See simulation.Admission."""
        return self._until_s

    def bound(self, pod: Pod, now_s: float) -> None:
        """See simulation.Admission."""
        self._there.append(pod)

    def left(self, pod: Pod, now_s: float) -> None:
        """See simulation.Admission."""
        self._there.remove(pod)
        self._free_s = now_s + self._gap_s

    def sampled(self, taken_at_s: float, used_mib: float, by_pod: Sequence[tuple[Pod, float]], now_s: float) -> None:
        """Nothing of this goes by samples."""


def kubernetes(usable_mib: int) -> Admission:
    """A whole GPU each."""
    return Admission(lambda pod, there: not there, first_come, gap_s=HAND_OVER_S)


def alibaba(usable_mib: int) -> Admission:
    """By whole GiB as declared."""
    return Admission(
        lambda pod, there: sum(each.engine.declared_gib for each in there) + pod.engine.declared_gib <= CARD_GIB,
        first_come,
    )


def oracle(usable_mib: int) -> Admission:
    """By what each truly needs."""
    return Admission(
        lambda pod, there: sum(each.engine.need_mib for each in there) + pod.engine.need_mib <= usable_mib,
        largest_first,
        AFTER_BIND_S,
    )


def unlimited(usable_mib: int) -> Admission:
    """On a card without end."""
    return Admission(lambda pod, there: True, largest_first, AFTER_BIND_S)
