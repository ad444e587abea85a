"""Where an allocation's clients connect: who is let in, and how fast."""

import logging
import socket
from collections.abc import Callable, Sized
from contextlib import suppress
from pathlib import Path
from time import monotonic_ns

from cuda_hook import wire
from edgeshare.contract.errors import Unavailable
from edgeshare.log_limit import LogLimit
from sharemgr.node.clients.offences import Offence
from sharemgr.node.clients.terms import Terms
from sharemgr.node.sockets.closer import Closer
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.sockets.peers import Peer, PeerGoneError

logger = logging.getLogger(__name__)

BACKLOG = 64
"""Connections that wait to be accepted: as many processes as a program starts at once; more try again."""

CONNECTIONS_PER_S = 100
"""Of one allocation, on average, and of a node beyond what each is guaranteed; twice max_clients at once. To take a
client in costs the manager as much as ten records, and programs start few processes again and again."""

PAUSE_S = 0.1
"""How long nobody is accepted after too many were, at least."""

_no_room = LogLimit()
"""Of the lines that say that a connection finds no room: descriptors are the manager's, of all allocations together."""


class Listener:
    """The socket of one allocation."""

    def __init__(
        self,
        path: Path,
        terms: Terms,
        loop: Loop,
        clients: Sized,
        max_clients: int,
        accepted: Callable[[socket.socket, Peer, Closer], None],
    ) -> None:
        """``clients`` are those that are in; ``accepted`` takes one more, whose end the closer sees to."""
        self._path = path
        self._terms = terms
        self._loop = loop
        self._clients = clients
        self._max_clients = max_clients
        self._accepted = accepted
        self._socket: socket.socket | None = None
        self._closer: Closer | None = None  # of the socket and of what came in through it
        self._warned = False
        self._paused = False

    def open(self) -> None:
        """Listens. Raises Unavailable where the socket cannot be made."""
        try:
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        except OSError as error:
            raise Unavailable(f"{self._path} cannot be made: {error.strerror}") from error
        try:
            self._path.unlink(missing_ok=True)
            self._closer = Closer(listening)
            listening.bind(str(self._path))
            # Any user of the container may connect; that nobody else can, the folder above sees to.
            self._path.chmod(0o666)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            raise Unavailable(f"{self._path} cannot be made: {error.strerror}") from error
        self._socket = listening
        self._listen()

    def close(self) -> None:
        """Listens no more."""
        if self._socket is not None:
            assert self._closer is not None
            self._loop.unwatch(self._socket.fileno())
            self._closer.end(self._socket)
            self._socket = None
            self._path.unlink(missing_ok=True)

    def _listen(self) -> None:
        self._paused = False
        if self._socket is not None:
            self._loop.watch(self._socket.fileno(), self._accept)

    def _pause(self) -> None:
        """Leaves who connects in the backlog for a moment."""
        assert self._socket is not None
        if not self._paused:
            self._paused = True
            self._loop.unwatch(self._socket.fileno())
            self._loop.call_later(PAUSE_S, self._listen)

    def _find_no_room(self, error: OSError) -> None:
        """Most often there is no descriptor left: listening on would only spin."""
        self._terms.offences.count(Offence.NOT_WELCOMED)
        more = _no_room.ending(monotonic_ns())
        if more is not None:
            text = "no connection can be accepted for a moment"
            logger.error("allocation %s: %s: %s%s", self._terms.allocation_id, text, error.strerror, more)
        self._pause()

    def _accept(self) -> None:
        assert self._socket is not None
        assert self._closer is not None
        now_ns = monotonic_ns()
        if self._closer.full or self._terms.connections.wait_ns(now_ns):
            self._pause()
            return
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            self._find_no_room(error)
            return
        if not self._terms.connections.spend(now_ns):
            text = "it is connected to faster than anybody needs: it has to wait"
            self._terms.offences.tell(Offence.CONNECTIONS, text, now_ns)
            self._pause()
        connection.setblocking(False)
        full = self._full()
        if full:
            self._refuse(connection, full)
            return
        try:
            peer = Peer(connection)
        except PeerGoneError:
            self._closer.end(connection)
            return
        except OSError as error:
            self._closer.end(connection)
            self._find_no_room(error)
            return
        if peer.pid == 0 and not self._warned:
            self._warned = True
            logger.warning(
                "allocation %s: its processes are in a pid namespace that this manager does not see: "
                "it cannot tell their memory, nor notice all of their deaths; run it in the host's (hostPID)",
                self._terms.allocation_id,
            )
        self._accepted(connection, peer, self._closer)

    def _full(self) -> str:
        """Why there is no room for one more; empty: there is."""
        if len(self._clients) >= self._max_clients:
            return f"the allocation has {self._max_clients} clients already (max_clients)"
        if not self._terms.places.any_free:
            return "the node has as many clients as it may, of all allocations together"
        return ""

    def _refuse(self, connection: socket.socket, text: str) -> None:
        assert self._closer is not None
        self._terms.offences.tell(Offence.CLIENTS, f"a connection is refused: {text}", monotonic_ns())
        with suppress(OSError):
            connection.send(wire.encode(wire.Refused(wire.Refusal.FULL, text)))
        self._closer.end(connection)
