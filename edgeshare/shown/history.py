"""How much was used in the last minutes: of each allocation on each device one number a step, and no more than so many
of them. Pure: time is passed in."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeshare.contract.units import NS_PER_S

STEP_NS = 10 * NS_PER_S
"""The manager's shares are of its last 10 s as shipped: what is shown of two steps is of nothing twice."""

STEPS = 90
"""A quarter of an hour."""

LINES_MAX = 4096
"""Allocations of which it is kept, those of the last quarter of an hour included: 370 KB of numbers."""

UNKNOWN = 255
"""In the place of a percent."""

Key = tuple[str, str]
"""A device and an allocation."""


@dataclass(slots=True)
class _Line:
    steps: bytearray = field(default_factory=bytearray)
    """Whole percents, the newest last; older ones than the first are unknown."""
    sum_percent: float = 0
    """Of this step, as the next."""
    count: int = 0


class History:
    """What allocations used of all devices."""

    def __init__(self, step_ns: int = STEP_NS, steps: int = STEPS, lines_max: int = LINES_MAX) -> None:
        self.step_ns = step_ns
        self.steps = steps
        self.version = 0
        """Rises with each step that is over."""
        self._lines_max = lines_max
        self._lines: dict[Key, _Line] = {}
        self._step: int | None = None

    def take(self, used_percent: Mapping[Key, float], now_ns: int) -> None:
        """Takes in what is used now. Allocations for which there is no room are left out."""
        self.advance(now_ns)
        for key, percent in used_percent.items():
            line = self._lines.get(key)
            if line is None:
                if len(self._lines) >= self._lines_max:
                    continue
                line = self._lines[key] = _Line()
            line.sum_percent += percent
            line.count += 1

    def advance(self, now_ns: int) -> None:
        """Time went on: ends the steps that are over. Of those in which nothing was taken in, nothing is known."""
        step = now_ns // self.step_ns
        if self._step is None:
            self._step = step
        over = step - self._step
        if over <= 0:
            return
        self._step = step
        self.version += 1
        for key, line in list(self._lines.items()):
            percent = round(min(100.0, max(0.0, line.sum_percent / line.count))) if line.count else UNKNOWN
            line.steps.append(percent)
            line.steps.extend([UNKNOWN] * min(over - 1, self.steps))
            del line.steps[: -self.steps]
            line.sum_percent, line.count = 0, 0
            if line.steps.count(UNKNOWN) == len(line.steps):
                del self._lines[key]

    def lines(self) -> dict[str, dict[str, list[int | None]]]:
        """By device and allocation the steps that are over, in percent, the newest last; None: not known."""
        found: dict[str, dict[str, list[int | None]]] = {}
        for (device_id, allocation_id), line in self._lines.items():
            steps = [None if percent == UNKNOWN else percent for percent in line.steps]
            found.setdefault(device_id, {})[allocation_id] = steps
        return found
