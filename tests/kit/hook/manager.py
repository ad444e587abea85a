"""The manager's side of the wire, moved by a test: it grants and revokes what the test says, when it says so."""

import itertools
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from cuda_hook import wire
from cuda_hook._core import ffi
from cuda_hook.gate import GatePages
from edgeshare.contract.errors import InvalidRequest
from sharemgr.node.memory.allowances import Memory
from sharemgr.node.sockets.peers import Peer
from tests.kit.hook.connection import Connection, hung_up
from tests.kit.hook.memory_answers import memory_answer

PATIENCE_S = 60
"""No test waits longer for anything; what is awaited takes milliseconds."""
MIB = 1 << 20
MS = 1_000_000

WELCOME = wire.Welcome(
    version=wire.VERSION,
    failure_policy=wire.FailurePolicy.OPEN,
    grace_ms=5000,
    epoch=1,
    queue_cap_ns=500_000,
    anticipation_ns=300_000,
    memory_cap_bytes=1024 * MIB,
)
CAP_MIB = WELCOME.memory_cap_bytes // MIB
Used = Callable[[], float]
"""How many MiB all clients use."""

R = TypeVar("R", bound=wire.ClientRecord)


class ScriptedManager:
    """Listens at ``directory``/hook.sock. Memory is counted by the real manager's own ledger."""

    def __init__(
        self,
        directory: Path,
        welcome: wire.Welcome = WELCOME,
        config: str | None = "",
        devices: Sequence[uuid.UUID | None] = (None,),
        context_bytes: int = 0,
    ) -> None:
        """``config`` is the text of hook.conf; None: there is none. ``devices`` are the UUIDs of the allocation's, None
        of one that has none; a context takes ``context_bytes`` of each."""
        self.directory = directory
        self.welcome = welcome
        self.connections: list[Connection] = []
        ids = tuple(map(str, range(len(devices))))
        self.memory = Memory("scripted", welcome.memory_cap_bytes, ids, dict.fromkeys(ids, context_bytes))
        self.answer: Callable[[Connection, wire.ClientRecord], bytes | None] = self._answer
        """What is sent for a record; a test may put garbage here."""
        self._devices = devices
        self._changed = threading.Condition()
        self._number = 0
        self._numbers = itertools.count()
        directory.mkdir(exist_ok=True)
        if config is not None:
            (directory / "hook.conf").write_text(config)
        (directory / "hook.sock").unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(str(directory / "hook.sock"))
        self._listener.listen(16)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.die()

    def die(self) -> None:
        """Ends as a killed manager does: nobody's page is discarded, all sockets close. One that has died stays so."""
        if self._listener.fileno() < 0:
            return
        (self.directory / "hook.sock").unlink(missing_ok=True)
        # Closing it alone leaves the thread that accepts at it for ever, and with it all that this manager has open.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._changed:
            for connection in self.connections:
                connection.socket.close() if connection.ended else connection.socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Meanwhile it handles nothing, as a stopped process does: what it is sent stays in the sockets."""
        with self._changed:
            yield

    @property
    def used_bytes(self) -> int:
        """What all clients use, allowances that stand left out."""
        with self._changed:
            return self.memory.used_bytes()

    def client(self, index: int = 0) -> Connection:
        """The n-th process that joined."""
        self._until(lambda: len(self._joined()) > index, f"no client {index} joined")
        return self._joined()[index]

    def grant(self, index: int = 0, contended: bool = True, free_at_ns: int = 0) -> int:
        """Opens a client's gate, from when the device is free; returns the grant's number."""
        self._number += 1
        self._pages(index).open(self._number, contended, time.monotonic_ns(), free_at_ns)
        return self._number

    def grant_until(self, reached: Callable[[], bool], contended: bool = True) -> int:
        """Grants until so much is reached, and again where the client gave the slice back before: a busy machine may
        keep it from launching for longer than it may think. Returns the last grant's number."""
        return self.keep_until(self.grant(contended=contended), reached, contended)

    def keep_until(self, number: int, reached: Callable[[], bool], contended: bool = True) -> int:
        """The same of one that has this grant."""
        while not reached():
            if self.released(number):
                number = self.grant(contended=contended)
        return number

    def begin(self, free_at_ns: int, index: int = 0) -> None:
        """The device falls free at another time than was said with the last grant."""
        self._pages(index).open(self._number, True, time.monotonic_ns(), free_at_ns)

    def contend(self, index: int = 0, contended: bool = True) -> None:
        """Changes the bit of the last grant, which goes on."""
        self._pages(index).open(self._number, contended, time.monotonic_ns())

    def used(self, index: int = 0) -> Any:
        """What a client says that it has used: a ``struct es_used *``."""
        used = ffi.new("struct es_used *")
        self._pages(index).used(used)
        return used

    def revoke(self, index: int = 0) -> None:
        """Closes a client's gate."""
        self._pages(index).close()

    def serve(self, contended: bool) -> None:
        """From now on a client that asks is granted at once, until it gives the slice back."""
        usual = self.answer

        def grant(connection: Connection, record: wire.ClientRecord) -> bytes | None:
            pages = connection.pages
            assert pages is not None
            if isinstance(record, wire.Release):
                pages.close()
            if isinstance(record, wire.Request) or (isinstance(record, wire.Release) and record.follows):
                self._number += 1
                pages.open(self._number, contended, time.monotonic_ns())
            return usual(connection, record)

        self.answer = grant

    def said(self, kind: type[R], index: int = 0) -> list[R]:
        """All records of this kind that a client has sent so far."""
        return [record for record in self.client(index).records if isinstance(record, kind)]

    def hears(self, kind: type[R], count: int = 1, index: int = 0) -> R:
        """Waits until a client has sent so many records of this kind; returns the last of these."""
        self._until(lambda: len(self.said(kind, index)) >= count, f"client {index} sent no {kind.__name__}")
        return self.said(kind, index)[count - 1]

    def released(self, number: int, index: int = 0) -> bool:
        """Whether a client has given this grant back."""
        return any(release.number == number for release in self.said(wire.Release, index))

    def hears_release(self, number: int, index: int = 0) -> wire.Release:
        """Waits for the RELEASE of a grant."""

        def of_number() -> list[wire.Release]:
            return [release for release in self.said(wire.Release, index) if release.number == number]

        self._until(lambda: bool(of_number()), f"client {index} did not release grant {number}")
        return of_number()[0]

    def promise(self, looks_at_ns: int, index: int = 0) -> None:
        """Says that it looks then at what a client left."""
        self._pages(index).promise(looks_at_ns)

    def finds_release(self, number: int, index: int = 0) -> wire.Release:
        """Waits until a grant was given back, by a record or by one that was left; returns it."""
        inbox = wire.Inbox()
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.released(number, index):
            if self._pages(index).left(0, inbox.release) is not None and inbox.header.number == number:
                release = wire.parse(bytes(inbox.buffer[: wire.RELEASE_BYTES]))
                assert isinstance(release, wire.Release)
                return release
            assert time.monotonic() < deadline_s, f"client {index} did not give grant {number} back"
        return self.hears_release(number, index)

    def sees_end(self, index: int = 0) -> None:
        """Waits until a client's connection has ended."""
        self._until(lambda: self._joined()[index].ended, f"client {index} is still there")

    def _joined(self) -> list[Connection]:
        return [connection for connection in self.connections if connection.pages is not None]

    def _pages(self, index: int) -> GatePages:
        pages = self.client(index).pages
        assert pages is not None
        return pages

    def _until(self, true: Callable[[], bool], otherwise: str) -> None:
        with self._changed:
            assert self._changed.wait_for(true, PATIENCE_S), otherwise

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            watched = Peer(peer)
            watched.close()
            connection = Connection(peer, next(self._numbers), watched.pid)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with self._changed:
            self.connections.append(connection)
        while True:
            try:
                packet = connection.socket.recv(wire.RECORD_BYTES_MAX + 1)
            except OSError:
                packet = b""
            if not packet:
                break
            record = wire.parse(packet)
            with self._changed:
                if isinstance(record, wire.Hello):
                    self._welcome(connection)
                connection.records.append(record)
                try:
                    answer = self.answer(connection, record)
                except InvalidRequest:
                    break
                finally:
                    self._changed.notify_all()
            if answer is not None:
                # Who has hung up meanwhile is seen to have ended by the next look.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.socket.send(answer)
        with self._changed:
            if connection.pages is not None:
                self.memory.leave(connection.number)
                for heir in self._joined():
                    if heir.pid == connection.pid and not heir.ended and heir is not connection:
                        self.memory.succeed(heir.number, connection.number)
            connection.ended = True
            connection.socket.close()
            self._changed.notify_all()

    def _welcome(self, connection: Connection) -> None:
        pages = GatePages.create(self.welcome.epoch)
        pages.name_devices([device.bytes if device else bytes(16) for device in self._devices])
        # A process may have ended since it said HELLO.
        with suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(connection.socket, [wire.encode(self.welcome)], pages.fds)
        pages.close_fds()
        connection.pages = pages
        self.memory.join(connection.number, pages)
        for other in self.connections:
            if other.pid == connection.pid and other.ended:
                self.memory.succeed(connection.number, other.number)

    def _hear_ends(self, asker: Connection) -> None:
        """As the real manager does before it refuses anything: whoever has hung up is gone, also one whose thread here
        has not come to it, and what is left of its session is not counted beside that of its next one."""
        # Who has itself hung up is gone as soon as its own thread, which is this one, comes to it.
        if hung_up(asker.socket):
            return
        gone = [each for each in self.connections if not each.ended and hung_up(each.socket)]
        self._until(lambda: all(each.ended for each in gone), "an end is not heard")

    def _answer(self, connection: Connection, record: wire.ClientRecord) -> bytes | None:
        return memory_answer(self.memory, connection, record, lambda: self._hear_ends(connection))
