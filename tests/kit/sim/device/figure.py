"""A figure that a rule is judged by: what it is, what it should be, and whether it became worse."""

from dataclasses import dataclass, replace

MARGIN = 0.1
LEAST = 0.01
"""What is smaller is as good as nothing."""


@dataclass(frozen=True)
class Figure:
    """A value, what it should be, and which way it is better."""

    value: float
    target: float
    most: bool = False

    @property
    def met(self) -> bool:
        """Whether it is as it should be."""
        return self.value <= self.target if self.most else self.value >= self.target

    def as_good_as(self, before: float) -> bool:
        """Whether it is worse than before by a tenth at most; what was as it should be must be so still."""
        if replace(self, value=before).met and not self.met:
            return False
        if self.most:
            return self.value <= (1 + MARGIN) * max(before, LEAST)
        return self.value >= (1 - MARGIN) * before


Figures = dict[str, Figure]
Recorded = dict[str, dict[str, float]]
"""Figure → its value and its target."""
