"""Whether an allocation had what its request guarantees: what it wanted of the device, was due of it and got.

It *wanted* what it used of the time in which it did not wait for the device: so it would have gone on alone. It was
*due* that, up to its request. What it got beyond that was lent to it. A program that thinks wants less than its request
at times, and is not wronged then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

LACK_RATIO, LACK_PERCENT = 0.05, 0.5
"""A guarantee is missed where more is lacking than such a part of what was due and so many points of the device: over a
window of 10 s the rule itself may be off by 0.32 points (sharemgr/node/turns/policy.py)."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Percents of the device over some time."""

    wanted_percent: float
    due_percent: float
    got_percent: float

    @property
    def met_ratio(self) -> float:
        """Which part of what it was due it got; 1 where it was due nothing."""
        return min(1.0, self.got_percent / self.due_percent) if self.due_percent else 1.0

    @property
    def missed(self) -> bool:
        """Whether it lacks more than the rule may be off by."""
        lack_percent = self.due_percent - self.got_percent
        return lack_percent > LACK_PERCENT and lack_percent > LACK_RATIO * self.due_percent


def judge(request_percent: int, got_ns: int, waited_ns: int, of_ns: int, usual_part: float = 0) -> Guarantee:
    """By what an allocation used and waited for within ``of_ns``. Who waited and never ran wants all that there is.
    Where others are let in beside it, so that it also waits for their kernels, ``usual_part`` of the device is what it
    uses where nobody is in its way; 0: it is not so."""
    free_ns = max(1, of_ns - waited_ns)
    wanted_percent = min(100.0, 100 * got_ns / free_ns)
    if usual_part:
        wanted_percent = max(100 * got_ns / of_ns, 100 * usual_part)
    elif got_ns == 0 and waited_ns > 0:
        wanted_percent = 100.0
    return Guarantee(wanted_percent, min(wanted_percent, request_percent), 100 * got_ns / of_ns)


class Misses:
    """For how long guarantees were missed, by allocation, as somebody looks again and again."""

    def __init__(self) -> None:
        self._looked_ns = 0
        self._missed_ns: dict[str, int] = {}

    def look(self, missed: Iterable[str], now_ns: int) -> None:
        """The guarantees of these allocations are missed now, and were since the last look."""
        elapsed_ns = now_ns - self._looked_ns if self._looked_ns else 0
        self._looked_ns = now_ns
        for allocation_id in missed:
            self._missed_ns[allocation_id] = self._missed_ns.get(allocation_id, 0) + elapsed_ns

    def missed_ns(self, allocation_id: str) -> int:
        """How long that was until the last look."""
        return self._missed_ns.get(allocation_id, 0)

    def forget(self, allocation_id: str) -> None:
        """The allocation is gone; another may come by its id."""
        self._missed_ns.pop(allocation_id, None)
