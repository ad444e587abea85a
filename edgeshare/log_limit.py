"""What may happen thousands of times a second is said now and then, with how often it went unsaid; what fails again and
again is said once, and that it is over."""

from collections.abc import Callable
from logging import Logger
from time import monotonic_ns

from edgeshare.contract.units import NS_PER_S

SAID_EVERY_NS = 10 * NS_PER_S
"""Often enough for whoever reads along, and about a megabyte a day of a flood that never ends."""

REASONS_AT_ONCE = 30
"""Of a trouble that has another reason each time."""


class LogLimit:
    """How often lines of one kind are said: ``burst`` of them at once, and one each SAID_EVERY_NS on average. What goes
    unsaid does not count, so that a flood keeps nothing from being said after it."""

    def __init__(self, burst: int = 1) -> None:
        self._free_ns = burst * SAID_EVERY_NS
        self._paid_until_ns = 0
        self._unsaid_count = 0

    def ending(self, now_ns: int) -> str | None:
        """What the line is to end with if it is said now; None: it goes unsaid, and is counted."""
        paid_until_ns = max(self._paid_until_ns, now_ns) + SAID_EVERY_NS
        if paid_until_ns > now_ns + self._free_ns:
            self._unsaid_count += 1
            return None
        more = f" ({self._unsaid_count} more since the last such line)" if self._unsaid_count else ""
        self._paid_until_ns = paid_until_ns
        self._unsaid_count = 0
        return more


class Trouble:
    """Something that is tried again and again. While it fails the log has why, as often as that is another reason than
    the time before, and then that it is over."""

    def __init__(
        self, logger: Logger, complaint: str, over: str = "", now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        """``complaint`` is said before the reason, and ``over`` at the end; empty: the complaint, and how often it
        was."""
        self.count = 0
        """How often it failed, one after the other."""
        self._logger = logger
        self._complaint = complaint
        self._over = over
        self._now_ns = now_ns
        self._said = ""
        self._limit = LogLimit(REASONS_AT_ONCE)

    def fails(self, why: object) -> None:
        """It failed once more."""
        self.count += 1
        if str(why) == self._said:
            return
        more = self._limit.ending(self._now_ns())
        if more is not None:
            self._said = str(why)
            self._logger.warning("%s: %s%s", self._complaint, why, more)

    def over(self) -> None:
        """It did not fail."""
        if self._said:
            self._logger.info("%s", self._over or f"{self._complaint}: over, after {self.count} times")
        self.count, self._said = 0, ""
