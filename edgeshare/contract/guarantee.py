"""Whether an allocation had what its request guarantees: what it wanted of the device, was due of it and got.

It *wanted* what it used of the time in which it did not wait for the device: so it would have gone on alone. It was
*due* that, up to its request. What it got beyond that was lent to it. A program that thinks wants less than its request
at times, and is not wronged then.
"""

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
