"""What may happen thousands of times a second is said in the log now and then, with how often it went unsaid."""

from edgeshare.contract.units import NS_PER_S

SAID_EVERY_NS = 10 * NS_PER_S
"""Often enough for whoever reads along, and about a megabyte a day of a flood that never ends."""


class LogLimit:
    """How often lines of one kind are said."""

    def __init__(self) -> None:
        self._said_ns = -SAID_EVERY_NS
        self._unsaid_count = 0

    def ending(self, now_ns: int) -> str | None:
        """What the line is to end with if it is said now; None: it goes unsaid, and is counted."""
        if now_ns < self._said_ns + SAID_EVERY_NS:
            self._unsaid_count += 1
            return None
        more = f" ({self._unsaid_count} more since the last such line)" if self._unsaid_count else ""
        self._said_ns = now_ns
        self._unsaid_count = 0
        return more
