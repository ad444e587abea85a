"""A manager of the test's own on a simulated machine, and clients of it that do as the test says."""

import mmap
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from cuda_hook import wire
from cuda_hook._core import ffi, lib
from edgeshare.client import ManagerClient
from edgeshare.v1.status_pb2 import AllocationStatus, NodeStatus
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.processes import forked

PATIENCE_S = 60
"""No test waits longer for anything; what is awaited takes milliseconds."""

EDGESHARE = str(Path(sys.executable).with_name("edgeshare"))
GPU_MEMORY_MIB = 8192
MIB = 1 << 20


class Manager:
    """A running ``edgeshare sharemgr node``."""

    def __init__(self, process: subprocess.Popen[str] | forked.Forked, log: Path) -> None:
        self.process = process
        self._log = log
        assert process.stdout is not None
        self.ready = process.stdout.readline().strip()
        """What it printed when it was ready; empty where it never was."""

    def log(self) -> str:
        return self._log.read_text()

    def end(self) -> int:
        """Ends it as an orchestrator does; returns its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


class Testbed:
    """A simulated machine of two GPUs, and directories for a manager."""

    __test__ = False

    def __init__(self, root: Path, **plan: Any) -> None:
        """``plan`` is what of the machine is not as usual (``simgpu.create.create``)."""
        self.root = root
        self.runtime_dir = root / "run"
        self.state_dir = root / "state"
        create(root / "machine", **{"gpus": 2, "memory_mib": GPU_MEMORY_MIB, **plan})
        self.machine = Machine(root / "machine")
        self.uuids = [gpu.uuid for gpu in self.machine.gpus()]
        self.environment = {**os.environ, **variables(root / "machine")}
        self._processes: list[subprocess.Popen[str] | forked.Forked] = []
        self._clients: list[WireClient] = []

    def manager(self, config: str = "", command: Sequence[str] = ()) -> Manager:
        """A manager that is ready; ``command`` is what is run in place of a fork."""
        log, arguments = self.root / "manager.log", self.manager_arguments(config)
        if command:
            with log.open("a") as stderr:
                self.popen(*arguments, stderr=stderr, command=command)
        else:
            self.fork(*arguments, log=log.name)
        manager = Manager(self._processes[-1], log)
        assert manager.ready, manager.log()
        return manager

    def manager_arguments(self, config: str = "") -> list[str]:
        path = self.root / "manager.yaml"
        path.write_text(config)
        return [
            *("sharemgr", "node", "--config", str(path)),
            *("--runtime-dir", str(self.runtime_dir), "--state-dir", str(self.state_dir)),
        ]

    def fork(self, *arguments: str, log: str = "programs.log") -> forked.Forked:
        """Starts an ``edgeshare`` command on the machine. What is said beside its output goes into the log."""
        with (self.root / log).open("a") as stderr:
            self._processes.append(process := forked.start(arguments, self.environment, stderr))
        return process

    def popen(
        self, *arguments: str, stderr: Any = subprocess.PIPE, command: Sequence[str] = (EDGESHARE,)
    ) -> subprocess.Popen[str]:
        """The same, but it is started by itself."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": stderr}
        process = subprocess.Popen([*command, *arguments], env=self.environment, text=True, **pipes)
        self._processes.append(process)
        return process

    def edgeshare(self, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Runs an ``edgeshare`` command to its end; ``changes`` are of its environment."""
        return forked.run(arguments, PATIENCE_S, {**self.environment, **changes})

    def fault(self, *arguments: str) -> None:
        """Breaks a GPU."""
        result = self.edgeshare("simgpu", "fault", *arguments)
        assert result.returncode == 0, result.stderr

    def run_arguments(self, *arguments: str) -> tuple[str, ...]:
        """Those of ``edgeshare run`` against this manager."""
        return ("run", "--runtime-dir", str(self.runtime_dir), *arguments)

    def calls(self) -> ManagerClient:
        """A client of the manager's gRPC services."""
        return ManagerClient(self.runtime_dir)

    def status(self) -> NodeStatus:
        with self.calls() as client:
            return client.status()

    def until(self, holds: Callable[[NodeStatus], bool]) -> NodeStatus:
        """The first status for which something holds."""
        deadline_s = time.monotonic() + PATIENCE_S
        with self.calls() as client:
            for status in client.watch(100_000_000):
                if holds(status):
                    return status
                assert time.monotonic() < deadline_s, status
        raise AssertionError("the manager ended")

    def folder(self, allocation_id: str) -> Path:
        return self.runtime_dir / "clients" / allocation_id

    def join(self, allocation_id: str) -> "WireClient":
        """A client that has joined the allocation."""
        client = self.connect(allocation_id)
        client.join()
        return client

    def connect(self, allocation_id: str) -> "WireClient":
        """A connection that has not said anything."""
        client = WireClient(self.folder(allocation_id) / "hook.sock")
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=PATIENCE_S)


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
        """Waits for the answer to HELLO, and takes the pages that come with it."""
        packet, fds, _, _ = socket.recv_fds(self.socket, wire.RECORD_BYTES_MAX, 3)
        answer = wire.parse_answer(packet)
        assert isinstance(answer, wire.Welcome), answer
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


def share(status: NodeStatus, allocation_id: str) -> AllocationStatus:
    """One allocation of a status."""
    (found,) = (each for each in status.allocations if each.allocation.id == allocation_id)
    return found


def ids(status: NodeStatus) -> Iterator[str]:
    """The allocations of a status."""
    return (each.allocation.id for each in status.allocations)


Bed = TypeVar("Bed", bound=Testbed)


@contextmanager
def in_own_folder(make: Callable[[Path], Bed], prefix: str) -> Iterator[Bed]:
    """A testbed in a folder of its own, until the end. Its paths are short: a socket's path has 107 bytes."""
    root = Path(tempfile.mkdtemp(prefix=prefix, dir="/dev/shm"))
    root.chmod(0o755)
    bed = make(root)
    yield bed
    bed.close()
    shutil.rmtree(root)
