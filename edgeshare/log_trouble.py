"""What fails again and again is said in the log once, and once more when that is over. Of what never ends, as a flood,
see ``log_limit``."""

from collections.abc import Callable
from logging import Logger
from time import monotonic_ns

from edgeshare.log_limit import LogLimit

REASONS_AT_ONCE = 30
"""Of one trouble that has another reason each time, the log has so many before the rest are counted."""


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
        """What is tried failed once more."""
        self.count += 1
        if str(why) == self._said:
            return
        more = self._limit.ending(self._now_ns())
        if more is not None:
            self._said = str(why)
            self._logger.warning("%s: %s%s", self._complaint, why, more)

    def over(self) -> None:
        """What is tried succeeded."""
        if self._said:
            self._logger.info("%s", self._over or f"{self._complaint}: over, after {self.count} times")
        self.count, self._said = 0, ""
