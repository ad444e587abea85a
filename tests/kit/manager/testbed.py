"""A manager of the test's own on a simulated machine, and clients of it that do as the test says."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from edgeshare.client import ManagerClient
from edgeshare.v1.status_pb2 import AllocationStatus, NodeStatus
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes import forked
from tests.kit.processes.waiting import PATIENCE_S

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
