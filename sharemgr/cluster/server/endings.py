"""Connections that the assigner ended: counted, and said in the log now and then."""

import logging
from collections.abc import Callable
from enum import StrEnum

from edgeshare.log_limit import LogLimit

logger = logging.getLogger(__name__)


class Ending(StrEnum):
    """Why a connection was ended, as the metric names it."""

    SLOW = "slow"
    """Its handshake took too long."""
    HANDSHAKE = "handshake"
    """Its handshake failed: it speaks no TLS, or its certificate is none that its authority signed."""
    HANDSHAKES = "handshakes"
    """Too many were in the handshake, and it was for longest."""
    CONNECTIONS = "connections"
    """Too many were let in, and nothing was heard of it for longest."""
    NAME = "name"
    """Its certificate names nobody who is let in."""
    PROTOCOL = "protocol"
    """What came over it is no HTTP, or more of it than a client has to say."""
    FLOOD = "flood"
    """It sent more frames that ask for nothing than frames.py lets through."""


Telling = Callable[[Ending, str], None]
"""Is told why a connection is ended."""


class Endings:
    """Counts and tells the endings of one server's connections."""

    def __init__(self, count: Callable[[Ending], None], now_ns: Callable[[], int]) -> None:
        """``count`` is told of each."""
        self._count = count
        self._now_ns = now_ns
        self._limits = {kind: LogLimit() for kind in Ending}

    def tell(self, address: str, kind: Ending, text: str) -> None:
        """Counts one, and says it in the log unless one of its kind was said a moment ago: who can connect can have
        hundreds ended in a second."""
        self._count(kind)
        more = self._limits[kind].ending(self._now_ns())
        if more is not None:
            logger.warning("a connection of %s is ended: %s%s", address, text, more)
