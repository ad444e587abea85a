"""Hostile clients of a manager, beside two programs that saturate the GPU."""

import os
import random
import select
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path

import grpc
import pytest

from cuda_hook import wire
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus, WatchSharesRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from tests.kit.manager.busy import all_granted, burn
from tests.kit.manager.testbed import MIB, Manager, Testbed, share
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes.waiting import PATIENCE_S

RECORDS = int(os.environ.get("EDGESHARE_ATTACK_RECORDS", "20000"))
"""Of each attack that sends records."""
CONNECTIONS = int(os.environ.get("EDGESHARE_ATTACK_CONNECTIONS", "300"))
"""Of each attack that opens them."""
CONFIG = "max_records_per_s: 2000\nmax_clients: 8\n"
"""So little that an attack is more than that on a machine that is slow, too."""
VICTIMS = {"60": 60, "20": 20}
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

    def __init__(self, testbed: Testbed, over: threading.Event) -> None:
        self.testbed = testbed
        self.over = over
        self.sent = 0
        self._random = random.Random(1)
        self._clients: list[WireClient] = []

    def joined(self, allocation_id: str = "bad") -> WireClient:
        """A client that has said HELLO, as a good one does."""
        client = WireClient(self.testbed.folder(allocation_id) / "hook.sock")
        self._clients.append(client)
        client.join()
        return client

    def close(self) -> None:
        """Ends its clients."""
        for client in self._clients:
            client.close()

    def connections(self, allocation_id: str) -> Iterator[socket.socket]:
        """One connection after the other, for as long as the attack lasts."""
        path = str(self.testbed.folder(allocation_id) / "hook.sock")
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

    def malformed(self) -> None:
        """Packets that are none, several on each connection: the first one costs it."""
        packets = cycle(PACKETS.values())
        for connection in self.connections("bad"):
            self.pour(connection, next(packets), 100)
            if self.sent >= RECORDS:
                return

    def stale(self) -> None:
        """Releases, usage and forecasts of grants that are over or never were."""
        client = self.joined()
        numbers = [self._random.randrange(1, 1 << 32) for _ in range(64)]
        records = [
            kind
            for number in numbers
            for kind in (wire.Release(number, 1, True), wire.Usage(number, 1), wire.Draining(number, 1))
        ]
        for packet in cycle([wire.encode(record) for record in records]):
            self.pour(client.socket, packet, 100)
            if self.sent >= RECORDS or self.over.is_set():
                return

    def flood(self) -> None:
        """Records that are good, but far too many, over several connections at once."""
        clients = [self.joined() for _ in range(4)]
        for client in cycle(clients):
            self.pour(client.socket, wire.encode(wire.Request()), 250)
            if self.sent >= RECORDS or self.over.is_set():
                return

    def deaf(self) -> None:
        """Asks and never reads the answers."""
        client = self.joined()
        self.pour(client.socket, wire.encode(wire.MemoryQuery(1, 0)), RECORDS)

    def keeps(self) -> None:
        """Takes a slice and gives it back only by hanging up, to take the next one."""
        while not self.over.is_set():
            with WireClient(self.testbed.folder("worse") / "hook.sock") as client:
                client.join()
                client.request()
                while not client.number and not self.over.is_set():
                    await_event(client.socket, select.POLLIN, 0.001)
                while client.held and not self.over.is_set():
                    await_event(client.socket, select.POLLIN, 0.01)
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
            while client.number == number:
                if self.over.is_set():
                    return
                await_event(client.socket, select.POLLIN, 0.001)
            number = client.number
            client.send(wire.Usage(number, gpu_ns))
            client.send(wire.Draining(number, 1 << 61))
            client.release(number, gpu_ns)

    def lies_about_memory(self) -> None:
        """Frees what it never had."""
        for connection in self.connections("bad"):
            # Where too many are there already, it is sent away before it has said all.
            with suppress(TimeoutError, ConnectionError):
                for record in (wire.Hello(1, 1, wire.Accelerator.GPU), wire.Freed(MIB, 0, PLAIN)):
                    connection.send(wire.encode(record))
                while connection.recv(wire.RECORD_BYTES_MAX):
                    self.sent += 1

    def crowd(self) -> None:
        """Connections that say nothing, to two allocations, kept open."""
        with ExitStack() as stack:
            for count in range(CONNECTIONS):
                if self.over.is_set():
                    break
                connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                connection.settimeout(0.1)
                with suppress(TimeoutError, BlockingIOError):
                    connection.connect(str(self.testbed.folder(ATTACKERS[count % 2]) / "hook.sock"))
                self.sent += 1
            self.over.wait(PATIENCE_S)

    def half_closes(self) -> None:
        """Shuts one direction and stays."""
        kept = []
        for connection, how in zip(self.connections("bad"), cycle((socket.SHUT_WR, socket.SHUT_RD)), strict=False):
            # As above.
            with suppress(TimeoutError, ConnectionError):
                connection.send(wire.encode(wire.Hello(1, 1, wire.Accelerator.GPU)))
            connection.shutdown(how)
            kept.append(connection.dup())
            if len(kept) > CONNECTIONS:
                break
        for connection in kept:
            connection.close()

    def babbles(self) -> None:
        """Noise, endless headers and huge messages at the gRPC sockets, and streams that nobody reads."""
        noises = (
            self._random.randbytes(65536),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 65536,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" * 1000,
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000,
        )
        address = f"unix:{self.testbed.runtime_dir / STATUS_SOCKET}"
        with (
            grpc.insecure_channel(address) as unread,
            grpc.insecure_channel(
                f"unix:{self.testbed.runtime_dir / ALLOCATIONS_SOCKET}", (("grpc.max_send_message_length", -1),)
            ) as huge,
        ):
            streams = [
                ShareStatusStub(unread).WatchShares(WatchSharesRequest(interval_ns=100_000_000)) for _ in range(80)
            ]
            call = huge.unary_unary("/edgeshare.v1.Allocations/AddAllocation", None, None)
            while not self.over.is_set():
                for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET):
                    for noise in noises:
                        with socket.socket(socket.AF_UNIX) as connection, suppress(ConnectionError, TimeoutError):
                            connection.settimeout(0.2)
                            connection.connect(str(self.testbed.runtime_dir / name))
                            connection.sendall(noise)
                with pytest.raises(grpc.RpcError):
                    call(bytes(8 * MIB), timeout=PATIENCE_S)
                self.over.wait(0.1)
            for stream in streams:
                stream.cancel()  # type: ignore[no-untyped-call]


class Scene:
    """A manager, two programs with a share, and allocations of those who mean no good."""

    def __init__(self, testbed: Testbed, manager: Manager) -> None:
        self.testbed = testbed
        self.manager = manager

    def offences(self, status: NodeStatus) -> dict[str, int]:
        """Those of all attackers, so far."""
        told = [share(status, name).offences for name in ATTACKERS]
        return {kind: sum(each[kind] for each in told) for kind in told[0]}

    def counted(self, kinds: Collection[str], before: Mapping[str, int], status: NodeStatus) -> bool:
        """Whether there were more of each of these since then."""
        now = self.offences(status)
        return all(now[kind] > before[kind] for kind in kinds)

    def rss_mib(self) -> float:
        """The manager's memory."""
        text = Path(f"/proc/{self.manager.process.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) / 1024

    def descriptors(self) -> int:
        """How many the manager has open."""
        return len(list(Path(f"/proc/{self.manager.process.pid}/fd").iterdir()))

    @contextmanager
    def under(self, act: Callable[[Attacker], None]) -> Iterator[Attacker]:
        """While somebody attacks."""
        over = threading.Event()
        attacker = Attacker(self.testbed, over)
        failures: list[BaseException] = []

        def run() -> None:
            try:
                act(attacker)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield attacker
        finally:
            over.set()
            thread.join(PATIENCE_S)
            attacker.close()
        assert not failures, failures


@contextmanager
def a_scene(testbed: Testbed) -> Iterator[Scene]:
    manager = testbed.manager(CONFIG)
    with testbed.calls() as calls:
        held = []
        for name in ATTACKERS:
            wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=6, memory_mib=100)
            held.append(calls.hold(wanted, wait_for_manager=False))
            next(held[-1])
        for name, percent in VICTIMS.items():
            burn(testbed, name, "--kernel-us", "1000", percent=percent)
        testbed.until(all_granted(len(VICTIMS)))
        yield Scene(testbed, manager)
