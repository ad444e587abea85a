"""What clients of one allocation did that no well-behaved client does: counted, and said in the log now and then."""

import logging
from enum import StrEnum

from edgeshare.log_limit import LogLimit

logger = logging.getLogger(__name__)


class Offence(StrEnum):
    """The kinds of offences, as the metric names them."""

    TRUNCATED = "truncated"
    """A packet that is shorter than its kind."""
    OVERSIZED = "oversized"
    """A packet that is longer than its kind, or than any."""
    UNKNOWN = "unknown"
    """A packet of a kind that no client sends."""
    MALFORMED = "malformed"
    """A field that holds what it never can."""
    OUT_OF_ORDER = "out-of-order"
    """Something before HELLO, or a second one."""
    STALE = "stale"
    """The number of a grant that is over or never was. A few are nobody's fault: they crossed with a revoke."""
    FALSE_USAGE = "false-usage"
    """More GPU time than passed since the gate was opened."""
    FALSE_MEMORY = "false-memory"
    """Memory committed that was not reserved, or freed that it never had."""
    FALSE_COUNTERS = "false-counters"
    """Counters in its page that went back, or of which a part is more than the whole."""
    FALSE_REPORTS = "false-reports"
    """Other GPU time in its pages than the driver tells of its processes, where reports did not add up."""
    DESCRIPTORS = "descriptors"
    """File descriptors passed in."""
    FLOOD = "flood"
    """More records than may be: the allocation was not read for a while."""
    UNREAD = "unread"
    """It asks and does not read the answers."""
    CONNECTIONS = "connections"
    """More connections in a short time than may be: no other was accepted for a while."""
    CLIENTS = "clients"
    """A connection beyond max_clients, or beyond what a node may have of all allocations together."""
    SILENT = "silent"
    """A connection that never said HELLO."""
    REFUSED = "refused"
    """A client of another version, or of another kind of device."""
    NOT_WELCOMED = "not-welcomed"
    """Nobody's offence of this allocation, maybe: the manager had no descriptors for a client's connection or pages, or
    processes of its user had so many on their way that they could not be passed to it, and it waits."""


class Offences:
    """One allocation's."""

    def __init__(self, allocation_id: str) -> None:
        self.counts: dict[Offence, int] = dict.fromkeys(Offence, 0)
        self._allocation_id = allocation_id
        self._limit = LogLimit()

    def count(self, kind: Offence) -> None:
        """Counts one and says nothing."""
        self.counts[kind] += 1

    def tell(self, kind: Offence, text: str, now_ns: int) -> None:
        """Counts one, and says it in the log unless one of the allocation was said a moment ago: who can reconnect can
        offend thousands of times a second."""
        self.counts[kind] += 1
        more = self._limit.ending(now_ns)
        if more is not None:
            logger.warning("allocation %s, %s%s", self._allocation_id, text, more)
