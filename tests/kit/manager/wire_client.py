"""A client of a manager that does as a test says, over its socket."""

import mmap
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cuda_hook import wire
from cuda_hook._core import ffi, lib
from tests.kit.processes.waiting import PATIENCE_S


class WireClient:
    """A client of the protocol, in the test's own process unless it is forked."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(str(path))
        self.welcome: wire.Welcome | None = None
        self._map: mmap.mmap | None = None
        self._released = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def join(self, version: int = wire.VERSION) -> None:
        """Says HELLO and is welcomed."""
        self.send(wire.Hello(version, version, wire.Accelerator.GPU))
        self.welcomed()

    def welcomed(self) -> None:
        """Waits for the answer to HELLO, however often it is told to, and takes the pages that come with it. Raises
        ConnectionRefusedError where it is another one."""
        answer: wire.ManagerRecord = wire.Wait()
        while isinstance(answer, wire.Wait):
            packet, fds, _, _ = socket.recv_fds(self.socket, wire.RECORD_BYTES_MAX, 3)
            answer = wire.parse_answer(packet)
        if not isinstance(answer, wire.Welcome):
            raise ConnectionRefusedError(str(answer))
        self.welcome = answer
        self._map = mmap.mmap(fds[0], lib.ES_PAGE_BYTES, prot=mmap.PROT_READ)
        self._hints = mmap.mmap(fds[1], lib.ES_PAGE_BYTES)
        self._siblings = mmap.mmap(fds[2], lib.ES_PAGE_BYTES) if len(fds) > 2 else None
        for fd in fds:
            os.close(fd)

    def send(self, record: wire.ClientRecord) -> None:
        self.socket.send(wire.encode(record))

    def answer(self) -> wire.ManagerRecord:
        return wire.parse_answer(self.socket.recv(wire.RECORD_BYTES_MAX))

    def ask(self, record: wire.ClientRecord) -> wire.ManagerRecord:
        self.send(record)
        return self.answer()

    def hint(self, backlog_ns: int) -> None:
        """Writes into the hint page what is queued."""
        self._hint.backlog_ns = backlog_ns

    def count_gpu(self, gpu_ns: int, drained_gpu_ns: int = 0) -> None:
        """Writes into the hint page what it used, in all and until it drained last."""
        self._hint.used.drained_gpu_ns, self._hint.used.gpu_ns = drained_gpu_ns, gpu_ns

    def foretell(self, ends_at_ns: int) -> None:
        """Writes into the hint page when what is queued is done."""
        self._hint.ends_at_ns = ends_at_ns

    def leave(self, number: int, gpu_ns: int = 0, follows: bool = False) -> bool:
        """Leaves a RELEASE in the hint page; False where it is too late for that."""
        self._released = number
        packet = ffi.from_buffer("struct es_release *", wire.encode(wire.Release(number, gpu_ns, follows)))
        return bool(lib.es_hint_leave(self._hint, self.gate, packet))

    def leave_garbage(self, garbage: bytes) -> None:
        """Writes anything where a RELEASE is left."""
        offset = ffi.offsetof("struct es_hint_page", "left")
        self._hints[offset : offset + len(garbage)] = garbage

    @property
    def _hint(self) -> Any:
        return ffi.cast("struct es_hint_page *", ffi.from_buffer(self._hints))

    @property
    def gate(self) -> Any:
        """The gate page, as the manager wrote it."""
        assert self._map is not None
        return ffi.cast("struct es_gate_page *", ffi.from_buffer(self._map))

    @property
    def word(self) -> int:
        return int(lib.es_gate_load(self.gate))

    @property
    def number(self) -> int:
        """Of the last grant; 0 where there was none."""
        return self.word >> int(lib.ES_GATE_NUMBER_SHIFT)

    @property
    def epoch(self) -> int:
        return int(self.gate.epoch)

    @property
    def held(self) -> bool:
        return bool(self.word & lib.ES_GATE_HELD)

    def use(self, uses: bool) -> None:
        """Says in the siblings page whether it uses the device."""
        lib.es_siblings_use(self._siblings_page, self.gate.place, uses)

    def siblings(self) -> int:
        """What the others of its allocation have done; odd while one uses the device."""
        return int(lib.es_siblings_seen(self._siblings_page, self.gate.place))

    @property
    def _siblings_page(self) -> Any:
        assert self._siblings is not None, "there is none for its version"
        return ffi.cast("struct es_siblings_page *", ffi.from_buffer(self._siblings))

    def request(self) -> None:
        self.send(wire.Request())

    def granted(self) -> int:
        """Waits for a grant after the one released last; returns its number, also when it was called back already."""
        return self._wait(lambda word: word >> lib.ES_GATE_NUMBER_SHIFT > self._released) >> lib.ES_GATE_NUMBER_SHIFT

    def revoked(self) -> None:
        """Waits until the gate is closed."""
        self._wait(lambda word: not word & lib.ES_GATE_HELD)

    def contended(self) -> None:
        """Waits until the gate says that others have work, or is closed: it is at once where the slice is over as they
        come."""
        self._wait(lambda word: bool(word & lib.ES_GATE_CONTENDED) or not word & lib.ES_GATE_HELD)

    def begins(self, free_at_ns: int, until_ns: int | None = None) -> bool:
        """Waits until the manager says that the device is free at this time; False where `until_ns` comes first."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.gate.free_at_ns != free_at_ns:
            lib.es_gate_wait(self.gate, self.word, 1_000_000)
            if until_ns is not None and time.monotonic_ns() >= until_ns:
                return False
            assert time.monotonic() < deadline_s, self.gate.free_at_ns
        return True

    def promised(self) -> None:
        """Waits until the manager says when it looks for what this client may leave: after it has granted the next."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not self.gate.looks_at_ns:
            lib.es_gate_wait(self.gate, self.word, 1_000_000)
            assert time.monotonic() < deadline_s, "nothing is promised"

    def release(self, number: int, gpu_ns: int = 0, follows: bool = False) -> None:
        self._released = number
        self.send(wire.Release(number, gpu_ns, follows))

    def ended(self) -> bool:
        """Waits until the manager closes the connection; False where it sends something instead."""
        try:
            return self.socket.recv(wire.RECORD_BYTES_MAX) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()

    def _wait(self, holds: Callable[[int], bool]) -> int:
        assert self._map is not None
        page = ffi.cast("struct es_gate_page *", ffi.from_buffer(self._map))
        deadline_s = time.monotonic() + PATIENCE_S
        while not holds(word := int(lib.es_gate_load(page))):
            lib.es_gate_wait(page, word, 1_000_000_000)
            assert time.monotonic() < deadline_s, f"the gate stays at {word:#x}"
        return word
