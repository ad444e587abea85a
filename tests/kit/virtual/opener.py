"""A manager that decides nothing: it opens and closes gates at the times that a case says, those of several at once."""

import socket
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cuda_hook import wire
from cuda_hook._core import ffi
from cuda_hook.gate import BESIDE_OTHERS, BESIDE_TELLS, GatePages
from edgeshare.contract.names import HOOK_SOCKET
from edgeshare.contract.units import NS_PER_US
from sharemgr.node.sockets.loop import Loop
from tests.kit.virtual.cases.case import Opening

MEMORY_BYTES = 1 << 32
WELCOME = wire.Welcome(
    version=wire.VERSION,
    failure_policy=wire.FailurePolicy.OPEN,
    grace_ms=5000,
    epoch=1,
    queue_cap_ns=500 * NS_PER_US,
    anticipation_ns=300 * NS_PER_US,
    memory_cap_bytes=MEMORY_BYTES,
)
CLOSED = Opening(at_ms=0)


class Opener:
    """Stands where ``sharemgr.node.node.Node`` does, for one device and one process an allocation."""

    def __init__(self, openings: Sequence[Opening], names: Sequence[str], clients_dir: Path, loop: Loop) -> None:
        self._loop = loop
        self._names = names
        self._now = CLOSED
        self._number = 0
        self._sockets: list[socket.socket] = []
        self._pages: dict[str, GatePages] = {}
        self._held: dict[str, int] = {}
        self._wanting: set[str] = set()
        self._said = {name: Counter[str]() for name in names}
        self._used = ffi.new("struct es_used *")
        for name in names:
            self._listen(name, clients_dir / name)
        for opening in openings:
            loop.call_later(opening.at_ms / 1000, self._open, opening)

    def restore(self) -> None:
        pass

    def look(self) -> None:
        pass

    def observe(self, observation: object) -> None:
        pass

    async def status(self) -> Any:
        return SimpleNamespace(allocations=())

    def used(self, name: str) -> dict[str, int]:
        """What a client's hint page says: a spell of idle time that lasts is part of the sum here."""
        if name not in self._pages:
            return dict.fromkeys(("gpu_ns", "drained_gpu_ns", "idle_ns", "queued", "waits", "backlog_ns"), 0)
        pages, used = self._pages[name], self._used
        pages.used(used)
        spell_ns = time.monotonic_ns() - used.idle_since_ns if used.idle_since_ns else 0
        return {
            "gpu_ns": used.gpu_ns,
            "drained_gpu_ns": used.drained_gpu_ns,
            "idle_ns": used.idle_ns + spell_ns,
            "queued": used.queued,
            "waits": used.waits,
            "backlog_ns": pages.hinted_backlog_ns(),
        }

    def said(self, name: str) -> dict[str, int]:
        """How many records of each kind a client has sent."""
        return dict(self._said[name])

    def _listen(self, name: str, folder: Path) -> None:
        folder.mkdir()
        (folder / "hook.conf").touch()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        listener.bind(str(folder / HOOK_SOCKET))
        listener.listen()
        self._sockets.append(listener)
        self._loop.watch(listener.fileno(), partial(self._accept, name, listener))

    def _accept(self, name: str, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        connection.setblocking(False)
        self._sockets.append(connection)
        self._loop.watch(connection.fileno(), partial(self._read, name, connection))

    def _read(self, name: str, connection: socket.socket) -> None:
        packet = connection.recv(wire.RECORD_BYTES_MAX)
        if not packet:
            self._loop.unwatch(connection.fileno())
            return
        record = wire.parse(packet)
        self._said[name][type(record).__name__] += 1
        match record:
            case wire.Hello():
                pages = self._pages[name] = GatePages.create(WELCOME.epoch)
                socket.send_fds(connection, [wire.encode(WELCOME)], pages.fds)
                pages.close_fds()
            case wire.Reserve(number):
                connection.send(wire.encode(wire.Reserved(number, MEMORY_BYTES, True)))
            case wire.MemoryQuery(number):
                connection.send(wire.encode(wire.MemoryInfo(number, MEMORY_BYTES, 0)))
            case wire.Request():
                self._want(name)
            case wire.Release(number, _, follows):
                if number == self._held.get(name):
                    self._close(name)
                if follows:
                    self._want(name)

    def _want(self, name: str) -> None:
        self._wanting.add(name)
        self._let_in(name)

    def _open(self, opening: Opening) -> None:
        self._now = opening
        for name in self._pages:
            if name in opening.open:
                self._let_in(name)
            elif name in self._held:
                self._close(name)

    def _close(self, name: str) -> None:
        """It is let in again once it wants to, which it says when it has drained: under another number."""
        del self._held[name]
        self._pages[name].close()

    def _let_in(self, name: str) -> None:
        """Opens its gate, where it may be open and the client wants that or has it open."""
        now = self._now
        if name not in now.open or not (name in self._held or name in self._wanting):
            return
        if name not in self._held:
            self._number += 1
            self._held[name] = self._number
        self._wanting.discard(name)
        others = len(now.open) > 1 if now.others is None else now.others
        beside = (BESIDE_OTHERS if others else 0) | (BESIDE_TELLS if now.tells else 0)
        cap_ns = now.cap_us * NS_PER_US if name in now.capped else 0
        self._pages[name].open(self._held[name], now.contended, time.monotonic_ns(), beside=beside, cap_ns=cap_ns)
