"""What may happen thousands of times a second is said in the log now and then, with how often it went unsaid."""

from edgeshare.contract.units import NS_PER_S

SAID_EVERY_NS = 10 * NS_PER_S
"""Often enough for whoever reads along, and about a megabyte a day of a flood that never ends."""


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
