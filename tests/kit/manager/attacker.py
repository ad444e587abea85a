"""Hostile clients of a manager."""

import os
import random
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import count, cycle
from pathlib import Path

from cuda_hook import wire
from edgeshare.contract.names import CLIENTS_DIR, HOOK_SOCKET
from edgeshare.contract.units import MIB
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes.waiting import PATIENCE_S

RECORDS = int(os.environ.get("EDGESHARE_ATTACK_RECORDS", "20000"))
"""Of each attack that sends records, unless it is said otherwise."""
CONNECTIONS = int(os.environ.get("EDGESHARE_ATTACK_CONNECTIONS", "300"))
"""Of each attack that opens them."""
ASKING = 64
"""Clients of one allocation that ask for memory that is refused."""
ASKS_EACH_S = 0.02
DRAIN_S = 0.095
ATTACKERS = ("bad", "worse", "liar")
"""Several: one that kept the GPU owes it for a while, and is granted nothing."""
PLAIN = wire.MemoryKind.PLAIN
PACKETS = {
    "malformed": wire.encode(wire.Release(1, 0, True)).replace(b"\x01\0\0\0", b"\0\0\0\0", 1),
    "truncated": wire.encode(wire.Release(1, 5, True))[:-1],
    "oversized": bytes(4096),
    "unknown": b"\x63\0\x08\0\0\0\0\0",
    "out-of-order": wire.encode(wire.Request()),
}
"""Each costs a connection, by the offence that it is."""


def await_event(connection: socket.socket, event: int, most_s: float) -> None:
    """Returns when it comes, or after so long. Not by select, which knows no descriptor above 1,023."""
    poll = select.poll()
    poll.register(connection, event)
    poll.poll(most_s * 1000)


class Attacker:
    """One hostile program, until it has done enough or the time is over."""

    def __init__(
        self, runtime_dir: Path, over: threading.Event, records: int = RECORDS, allocation_id: str = "bad"
    ) -> None:
        """Of the manager there, and of that allocation where what it does names no other."""
        self.runtime_dir = runtime_dir
        self.over = over
        self.records = records
        self.allocation_id = allocation_id
        self.sent = 0
        self.random = random.Random(1)
        self._clients: list[WireClient] = []

    def socket_path(self, allocation_id: str) -> Path:
        """Where clients of an allocation connect."""
        return self.runtime_dir / CLIENTS_DIR / allocation_id / HOOK_SOCKET

    def joined(self, allocation_id: str = "") -> WireClient:
        """A client that has said HELLO, as a good one does."""
        client = WireClient(self.socket_path(allocation_id or self.allocation_id))
        self._clients.append(client)
        client.join()
        return client

    def joined_up_to(self, most: int) -> list[WireClient]:
        """So many clients, or as many as the allocation may have."""
        clients: list[WireClient] = []
        # One too many may be sent away before it has said HELLO.
        with suppress(ConnectionError):
            while len(clients) < most:
                clients.append(self.joined())
        return clients

    def close(self) -> None:
        """Ends its clients."""
        for client in self._clients:
            client.close()

    def connections(self) -> Iterator[socket.socket]:
        """One connection after the other, for as long as the attack lasts."""
        path = str(self.socket_path(self.allocation_id))
        while not self.over.is_set():
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.settimeout(0.2)
                # Refused for a while, where the manager has had enough of it.
                with suppress(TimeoutError, BlockingIOError, ConnectionError):
                    connection.connect(path)
                    yield connection

    def pour(self, connection: socket.socket, packet: bytes, count: int) -> None:
        """Sends a packet again and again, as fast as it is taken."""
        connection.setblocking(False)
        for _ in range(count):
            try:
                connection.send(packet)
                self.sent += 1
            except BlockingIOError:
                if self.over.is_set():
                    return
                await_event(connection, select.POLLOUT, 0.1)
            except ConnectionError:
                return

    def until(self, client: WireClient, holds: Callable[[], object]) -> bool:
        """Waits until something is so of this client's gate; False where the attack is over before."""
        while not holds():
            if self.over.is_set():
                return False
            await_event(client.socket, select.POLLIN, 0.001)
        return True

    def granted(self, client: WireClient, before: int) -> int:
        """The number of the grant that follows that one; 0 where the attack is over before."""
        return client.number if self.until(client, lambda: client.number != before) else 0

    def malformed(self) -> None:
        """Packets that are none, several on each connection: the first one costs it."""
        packets = cycle(PACKETS.values())
        for connection in self.connections():
            self.pour(connection, next(packets), 100)
            if self.sent >= self.records:
                return

    def stale(self) -> None:
        """Releases, usage and forecasts of grants that are over or never were."""
        client = self.joined()
        numbers = [self.random.randrange(1, 1 << 32) for _ in range(64)]
        records = [
            kind
            for number in numbers
            for kind in (wire.Release(number, 1, True), wire.Usage(number, 1), wire.Draining(number, 1))
        ]
        for packet in cycle([wire.encode(record) for record in records]):
            self.pour(client.socket, packet, 100)
            if self.sent >= self.records or self.over.is_set():
                return

    def flood(self, connections: int = 4) -> None:
        """Records that are good, but far too many, over several connections at once."""
        clients = self.joined_up_to(connections)
        for client in cycle(clients):
            self.pour(client.socket, wire.encode(wire.Request()), 250)
            if self.sent >= self.records or self.over.is_set():
                return

    def deaf(self) -> None:
        """Asks and never reads the answers."""
        client = self.joined()
        self.pour(client.socket, wire.encode(wire.MemoryQuery(1, 0)), self.records)

    def keeps(self) -> None:
        """Takes a slice and gives it back only by hanging up, to take the next one."""
        while not self.over.is_set():
            with WireClient(self.socket_path("worse")) as client:
                client.join()
                client.request()
                if self.granted(client, 0) and self.until(client, lambda: not client.held):
                    self.over.wait(0.3)

    def lies(self) -> None:
        """Claims a century of GPU time, or none, and to be done in a century."""
        client = self.joined("liar")
        client.socket.settimeout(0.2)
        number = 0
        for gpu_ns in cycle((10**18, 0)):
            client.hint((1 << 64) - 1)
            client.request()
            # Of a grant that was called back before it was seen it lies, too.
            number = self.granted(client, number)
            if not number:
                return
            client.send(wire.Usage(number, gpu_ns))
            client.send(wire.Draining(number, 1 << 61))
            client.release(number, gpu_ns)

    def drains(self) -> None:
        """Says when it is called back that it is done in a century, and is after a tenth of a second."""
        client = self.joined()
        number = 0
        while not self.over.is_set():
            client.request()
            number = self.granted(client, number)
            if not number or not self.until(client, lambda: not client.held):
                return
            client.send(wire.Draining(number, 1 << 61))
            self.over.wait(DRAIN_S)
            client.release(number)

    def asks_for_memory(self, each_s: float = ASKS_EACH_S) -> None:
        """Has many clients that ask again and again for more than there is."""
        clients = self.joined_up_to(ASKING)
        for client in clients:
            client.socket.setblocking(False)
        for number in count(1):
            for client in clients:
                # One that is not read any more may be full of what was asked before.
                with suppress(BlockingIOError):
                    client.send(wire.Reserve(number, 1 << 50, 0, PLAIN))
                    self.sent += 1
                with suppress(BlockingIOError):
                    while client.socket.recv(wire.RECORD_BYTES_MAX):
                        pass
            if self.over.wait(each_s):
                return

    def lies_about_memory(self) -> None:
        """Frees what it never had."""
        for connection in self.connections():
            # Where too many are there already, it is sent away before it has said all.
            with suppress(TimeoutError, ConnectionError):
                for record in (wire.Hello(1, 1, wire.Accelerator.GPU), wire.Freed(MIB, 0, PLAIN)):
                    connection.send(wire.encode(record))
                while connection.recv(wire.RECORD_BYTES_MAX):
                    self.sent += 1

    def crowd(self) -> None:
        """Connections that say nothing, to two allocations, kept open."""
        with ExitStack() as stack:
            for each in range(CONNECTIONS):
                if self.over.is_set():
                    break
                connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                connection.settimeout(0.1)
                with suppress(TimeoutError, BlockingIOError):
                    connection.connect(str(self.socket_path(ATTACKERS[each % 2])))
                self.sent += 1
            self.over.wait(PATIENCE_S)

    def half_closes(self) -> None:
        """Shuts one direction and stays."""
        kept = []
        for connection, how in zip(self.connections(), cycle((socket.SHUT_WR, socket.SHUT_RD)), strict=False):
            # As above.
            with suppress(TimeoutError, ConnectionError):
                connection.send(wire.encode(wire.Hello(1, 1, wire.Accelerator.GPU)))
            connection.shutdown(how)
            kept.append(connection.dup())
            if len(kept) > CONNECTIONS:
                break
        for connection in kept:
            connection.close()
