"""One client: a hooked process at the other end of an allocation's socket."""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic_ns

from cuda_hook import wire
from cuda_hook.gate import GatePages
from edgeshare.errors import InvalidRequest
from edgeshare.units import NS_PER_S
from sharemgr.node.device import DeviceArbiter
from sharemgr.node.ledger import Ledger
from sharemgr.node.peers import Peer

logger = logging.getLogger(__name__)

HELLO_TIMEOUT_NS = 5 * NS_PER_S
"""A hook says HELLO at once; a connection that has not after this long is something else."""

BURST_NS = NS_PER_S // 4
"""A client may send this much of a second's records at once: programs allocate most when they start."""

PAUSE_S = 0.02
"""How long a client that sends more is not read."""


@dataclass(frozen=True)
class Terms:
    """What all clients of one allocation have in common."""

    allocation_id: str
    device_ids: tuple[str, ...]
    accelerator: wire.Accelerator
    welcome: wire.Welcome
    record_interval_ns: int
    """Mean time between two records of a client that sends as many as it may."""
    device: DeviceArbiter
    ledger: Ledger


class Client:
    """One connection, from accept to its end.

    Its records are handled right where they are read, in the event loop's callback: no queue and no task
    lie between a RELEASE and the next one's gate.
    """

    def __init__(
        self,
        *,
        client_id: int,
        connection: socket.socket,
        peer: Peer,
        terms: Terms,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[["Client"], None],
    ) -> None:
        """``connection`` is non-blocking; ``ended`` is called once, when the client is gone."""
        self.client_id = client_id
        self.peer = peer
        self.pages: GatePages | None = None
        """Its gate, from HELLO on."""
        self.connected_at_ns = monotonic_ns()
        self._connection = connection
        self._terms = terms
        self._loop = loop
        self._ended: Callable[[Client], None] | None = ended
        self._paid_until_ns = 0
        loop.add_reader(connection.fileno(), self._readable)
        if peer.pidfd >= 0:
            loop.add_reader(peer.pidfd, self.end)

    @property
    def joined(self) -> bool:
        """Whether it has said HELLO and been welcomed."""
        return self.pages is not None

    def end(self) -> None:
        """Takes the client out: its process died, its connection ended, or it is to leave."""
        ended, self._ended = self._ended, None
        if ended is None:
            return
        if self.pages is not None:
            # First of all what others wait for. The gate is shut before somebody else's opens.
            self.pages.discard()
            self._terms.device.gone(self._terms.allocation_id, self.client_id, monotonic_ns())
        self._loop.remove_reader(self._connection.fileno())
        if self.peer.pidfd >= 0:
            self._loop.remove_reader(self.peer.pidfd)
        self.peer.close()
        self._connection.close()
        ended(self)

    def _readable(self) -> None:
        try:
            packet = self._connection.recv(wire.RECORD_BYTES_MAX + 1)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if not packet:
            self.end()
            return
        now_ns = monotonic_ns()
        try:
            self._handle(wire.parse(packet), now_ns)
        except (wire.MalformedRecord, InvalidRequest) as error:
            # Said once: the connection ends with it.
            logger.warning(
                "allocation %s, pid %d: %s; its connection is closed",
                self._terms.allocation_id,
                self.peer.pid,
                error,
            )
            self.end()
            return
        self._paid_until_ns = max(self._paid_until_ns, now_ns) + self._terms.record_interval_ns
        if self._paid_until_ns > now_ns + BURST_NS and self._ended is not None:
            self._loop.remove_reader(self._connection.fileno())
            self._loop.call_later(PAUSE_S, self._resume)

    def _resume(self) -> None:
        if self._ended is not None:
            self._loop.add_reader(self._connection.fileno(), self._readable)

    def _handle(self, record: wire.ClientRecord, now_ns: int) -> None:
        terms = self._terms
        if self.pages is None:
            self._join(record, now_ns)
            return
        match record:
            case wire.Release(number, gpu_ns, follows):
                terms.device.release(terms.allocation_id, self.client_id, number, gpu_ns, follows, now_ns)
            case wire.Draining(number, ends_at_ns, launch_ns):
                terms.device.draining(terms.allocation_id, self.client_id, number, ends_at_ns, launch_ns, now_ns)
            case wire.Request():
                terms.device.request(terms.allocation_id, self.client_id, now_ns)
            case wire.Usage(number, gpu_ns):
                terms.device.usage(terms.allocation_id, self.client_id, number, gpu_ns, now_ns)
            case wire.Hello():
                raise wire.MalformedRecord("HELLO came twice")
            case _:
                self._handle_memory(record)

    def _handle_memory(self, record: wire.ClientRecord) -> None:
        ledger = self._terms.ledger
        match record:
            case wire.Reserve(number, size_bytes, device):
                verdict = ledger.reserve(self.client_id, number, device, size_bytes)
                self._send(wire.Reserved(number, verdict.free_bytes, verdict.granted))
            case wire.Commit(number, size_bytes):
                ledger.commit(self.client_id, number, size_bytes)
            case wire.Cancel(number):
                ledger.cancel(self.client_id, number)
            case wire.Freed(size_bytes, device):
                ledger.freed(self.client_id, device, size_bytes)
            case wire.MemoryQuery(number, device):
                info = ledger.info(device)
                self._send(wire.MemoryInfo(number, info.cap_bytes, info.used_bytes))

    def _join(self, record: wire.ClientRecord, now_ns: int) -> None:
        if not isinstance(record, wire.Hello):
            raise wire.MalformedRecord(f"{type(record).__name__} came before HELLO")
        refused = _refusal(record, self._terms.accelerator)
        if refused is not None:
            self._send(refused)
            self.end()
            return
        pages = GatePages.create(self._terms.welcome.epoch)
        try:
            socket.send_fds(self._connection, [wire.encode(self._terms.welcome)], pages.fds)
        except OSError:
            self.end()
            return
        finally:
            pages.close_fds()
        self.pages = pages
        self._terms.ledger.join(self.client_id)
        self._terms.device.join(self._terms.allocation_id, self.client_id, now_ns)

    def _send(self, record: wire.ManagerRecord) -> None:
        try:
            self._connection.send(wire.encode(record))
        except OSError:
            # It is gone, or it asks and does not read the answers: we keep none for it.
            self.end()


def _refusal(hello: wire.Hello, accelerator: wire.Accelerator) -> wire.Refused | None:
    if not hello.version_min <= wire.VERSION <= hello.version_max:
        text = f"this manager speaks version {wire.VERSION}, not {hello.version_min} to {hello.version_max}"
        return wire.Refused(wire.Refusal.VERSION, text)
    if hello.accelerator != accelerator:
        return wire.Refused(wire.Refusal.ACCELERATOR, f"this allocation is of a {accelerator.name}")
    return None
