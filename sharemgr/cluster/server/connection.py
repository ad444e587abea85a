"""What holds of a connection whatever is spoken over it: how long it is kept, and how little waits for its client."""

import asyncio
import socket
from abc import ABC, abstractmethod
from dataclasses import dataclass

from sharemgr.cluster.server.answers import Answering
from sharemgr.cluster.server.bodies import Bodies
from sharemgr.cluster.server.endings import Telling


@dataclass(frozen=True, slots=True)
class Terms:
    """On which a client is let in."""

    answering: Answering
    body_bytes_max: int
    idle_s: float
    """A client of which nothing was heard for so long is sent away."""
    all_of_them: set["ClientConnection"]
    """The connections that last, whatever is spoken over them."""
    bodies: Bodies
    tell: Telling
    """Is told why one is ended that does what none should."""


class ClientConnection(asyncio.Protocol, ABC):
    """A client that was let in."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._is_leaving = False
        """It takes no more in than what is here, or on its way."""
        self.over = asyncio.Event()
        """Set at its end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # With Nagle's algorithm an answer waits until the client's system has acknowledged the one before, 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._terms.all_of_them.add(self)
        self._loop = asyncio.get_running_loop()
        self._heard_s = self._loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol. What is being answered goes on: a Binding is not half written."""
        self._idle.cancel()
        self._terms.all_of_them.discard(self)
        self.over.set()

    def pause_writing(self) -> None:
        """A client that does not read is not read from either, so that what waits for it stays bounded."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._transport.resume_reading()

    @abstractmethod
    def leave(self) -> None:
        """Has the client go on over another connection; what it has sent over this one is answered."""

    def end(self) -> None:
        """Ends when what was asked over it is answered."""
        self.leave()

    def abort(self) -> None:
        """Ends at once."""
        self._transport.abort()

    @abstractmethod
    def _end_idle(self) -> None:
        """Nothing was heard of the client for ``idle_s``: ends, or looks later."""

    def _look_later(self) -> None:
        self._idle = self._loop.call_later(self._terms.idle_s, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        # A timer for each part that comes would cost more than to look, when this one is over, what came meanwhile.
        at_s = self._heard_s + self._terms.idle_s
        if at_s > self._loop.time():
            self._idle = self._loop.call_at(at_s, self._look_whether_idle)
        else:
            self._end_idle()
