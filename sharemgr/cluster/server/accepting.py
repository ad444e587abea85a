"""Takes connections in: shakes hands, lets in who may come in, and keeps both to a bounded number."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic_ns

from edgeshare.http.connection_limit import ConnectionLimit
from edgeshare.log_limit import LogLimit
from sharemgr.cluster.server.endings import Ending, Endings, Telling

logger = logging.getLogger(__name__)

HANDSHAKE_S = 3.0
"""A handshake is two ways there and back and some milliseconds. kube-scheduler gives a call up after 5 s (its
``httpTimeout``): one whose handshake was lost is tried again before that."""

SHUTDOWN_S = 1.0
"""How long the end of a connection is waited for that is closed in order: what was last said to it has gone out."""

HANDSHAKES_MAX = 64
"""At a time. Each costs 0.3 MiB, most of it asyncio's buffer."""

HANDSHAKES_PER_ADDRESS_MAX = 8
"""kube-scheduler, which speaks HTTP/2, has one at a time; what several replicas of it send may come from one address,
that of a node that sends it on."""

CONNECTIONS_MAX = 256
"""How many are let in. Over HTTP/1.1, kube-scheduler has one for each of its requests: this is as many as it may have
at a time over HTTP/2 (h2_server.STREAMS_MAX). Over TLS they cost 80 MiB, a sixth of what the chart gives
the assigner."""

IN_HANDSHAKE = f"{HANDSHAKES_MAX} may be in the handshake, {HANDSHAKES_PER_ADDRESS_MAX} of one address"

ACCEPT_AGAIN_S = 1.0
"""The kernel has no room for a connection, most often no descriptor: one that ends makes some."""

Speaking = Callable[[asyncio.Transport, Telling], asyncio.Protocol]
"""Makes what speaks over a connection that is let in; it tells where it ends it."""


class Acceptor:
    """Where the connections to one address come in."""

    def __init__(self, refusal: Callable[[Mapping[str, object]], str], speaking: Speaking, endings: Endings) -> None:
        """``refusal`` says why who shows a certificate (as the ssl module gives it; empty: none) is not let in; nothing
        where it is."""
        self.context: ssl.SSLContext | None = None
        """What handshakes go by from now on; None: there are none."""
        self._refusal = refusal
        self._speaking = speaking
        self._endings = endings
        self._no_room_log = LogLimit()
        self._shaking: ConnectionLimit[_Accepted] = ConnectionLimit(HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX)
        self._inside: ConnectionLimit[_Accepted] = ConnectionLimit(CONNECTIONS_MAX, CONNECTIONS_MAX)
        """The youngest is the one that was heard of last."""

    async def accept(self, listener: socket.socket) -> None:
        """Takes in those that connect there, until it is cancelled; then those in the handshake are ended."""
        handshakes = set[asyncio.Task[None]]()
        listener.setblocking(False)
        try:
            while True:
                try:
                    connection, address = await asyncio.get_running_loop().sock_accept(listener)
                except OSError as error:
                    more = self._no_room_log.ending(monotonic_ns())
                    if more is not None:
                        logger.error("no connection can be accepted for a moment: %s%s", error.strerror or error, more)
                    await asyncio.sleep(ACCEPT_AGAIN_S)
                    continue
                accepted = _Accepted(self, str(address[0]))
                self._admit(self._shaking, accepted, Ending.HANDSHAKES, IN_HANDSHAKE)
                handshake = accepted.shake_hands(connection)
                handshakes.add(handshake)
                handshake.add_done_callback(handshakes.discard)
                # What is already connected has its turn between any two that come.
                await asyncio.sleep(0)
        finally:
            for each in handshakes:
                each.cancel()
            if handshakes:
                await asyncio.wait(handshakes)

    async def shake_hands(self, accepted: "_Accepted", connection: socket.socket) -> None:
        """Returns when it is let in, or has ended."""
        limits = {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": SHUTDOWN_S} if self.context else {}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: accepted, connection, ssl=self.context, **limits
            )
        except ConnectionAbortedError:
            self._endings.tell(accepted.address, Ending.SLOW, f"its handshake has taken longer than {HANDSHAKE_S:g} s")
        except ssl.SSLError as error:
            self._endings.tell(accepted.address, Ending.HANDSHAKE, f"its handshake failed: {error.reason or error}")
        except OSError:
            # The other side has left.
            pass
        finally:
            self._shaking.remove(accepted)

    def let_in(self, accepted: "_Accepted", transport: asyncio.Transport) -> asyncio.Protocol | None:
        """What speaks over a connection that was made; None where it is not let in."""
        self._shaking.remove(accepted)
        refusal = self._refusal(transport.get_extra_info("peercert") or {})
        if refusal:
            self._endings.tell(accepted.address, Ending.NAME, refusal)
            return None
        self._admit(self._inside, accepted, Ending.CONNECTIONS, f"there may be {CONNECTIONS_MAX}")
        return self._speaking(transport, partial(self._endings.tell, accepted.address))

    def heard_of(self, accepted: "_Accepted") -> None:
        """A connection has brought something."""
        self._inside.renew(accepted)

    def gone(self, accepted: "_Accepted") -> None:
        """A connection has ended."""
        self._inside.remove(accepted)

    def _admit(self, limit: ConnectionLimit["_Accepted"], accepted: "_Accepted", kind: Ending, bounds: str) -> None:
        evicted = limit.admit(accepted, accepted.address)
        if evicted is not None:
            self._endings.tell(evicted.address, kind, f"{bounds}, and one came from {accepted.address}")
            evicted.end()


class _Accepted(asyncio.Protocol):
    """A connection, from the time it was accepted to its end."""

    def __init__(self, acceptor: Acceptor, address: str) -> None:
        self.address = address
        self._acceptor = acceptor
        self._transport: asyncio.Transport | None = None
        self._spoken = asyncio.Protocol()
        """What speaks over it: what does nothing, until it is let in."""
        self._handshake: asyncio.Task[None] | None = None

    def shake_hands(self, connection: socket.socket) -> asyncio.Task[None]:
        """Begins. The task ends when it is let in, or has ended."""
        self._handshake = task = asyncio.create_task(self._acceptor.shake_hands(self, connection))
        task.add_done_callback(partial(self._shaken, connection))
        return task

    def end(self) -> None:
        """Ends it at once; nothing more is sent."""
        if self._transport is not None:
            self._transport.abort()
        elif self._handshake is not None:
            self._handshake.cancel()

    def _shaken(self, connection: socket.socket, _: object) -> None:
        # Its traceback leads back here, and through asyncio's frames to the buffers: what makes a circle is kept until
        # the garbage collector comes by.
        self._handshake = None
        if self._transport is None:
            # One that was cancelled before it began has left it open.
            connection.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol. The handshake, if there is one, has succeeded."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        spoken = self._acceptor.let_in(self, transport)
        if spoken is None:
            self.end()
        else:
            self._spoken = spoken
            spoken.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._acceptor.gone(self)
        self._spoken.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._acceptor.heard_of(self)
        self._spoken.data_received(data)

    def eof_received(self) -> bool | None:
        """See asyncio.Protocol."""
        return self._spoken.eof_received()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._spoken.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._spoken.resume_writing()
