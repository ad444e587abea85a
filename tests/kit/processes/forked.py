"""Starts ``edgeshare`` commands from a process that has loaded them already.

To load its packages is most of what a daemon that lives for seconds costs, and the tests start a thousand. A nursery
loads them once. What is forked from it has arguments, environment and streams of its own, and is a child of whoever
asked for it, as if it had been started there."""

import atexit
import ctypes
import importlib
import itertools
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from edgeshare.cli import loading, main
from tests.kit.processes.holds import Chance, Holds, of_product

NODE = (
    *("edgeshare.cli.deviceplugin", "edgeshare.cli.labeller", "edgeshare.cli.run", "edgeshare.cli.sharemgr"),
    *("sharemgr.node.config", "sharemgr.node.manager", "sharemgr.node.web_pages", "sharemgr.node.sockets.loop"),
    *("deviceplugin.metrics", "labeller.cluster", "labeller.daemon", "labeller.usage.watching"),
    *("edgeshare.http.pages", "edgeshare.kube.client_library", "edgeshare.inventory.nvml.nvml", "grpc._channel"),
)
"""The node's commands, and what they import only when they need it: each of these would import it anew."""
CLUSTER = (
    *("edgeshare.cli.sharemgr", "edgeshare.cli.status", "edgeshare.cli.top", "edgeshare.cli.status.cluster"),
    *("sharemgr.cluster.service", "sharemgr.cluster.replica.replica", "edgeshare.kube.client_library", "grpc._channel"),
)
"""The same of a cluster's: twice as large, and what is larger takes longer to fork."""
READ_AT_START = ("GRPC_", "LD_", "MALLOC_", "PYDANTIC_", "PYTHON")
"""How variables begin that the loader, the interpreter or a library reads once: nothing can be given others later."""

COMMAND = "edgeshare"
REQUEST_BYTES_MAX = 128 << 10
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


_held: Iterator[Chance] | None = None
_nurseries = ExitStack()
atexit.register(_nurseries.close)


def hold_up(chance: Chance) -> None:
    """Those that are started from now on, each at lines of its own."""
    global _held  # noqa: PLW0603 - of this process, as the nurseries are
    _held = (replace(chance, seed=f"{chance.seed} {number}") for number in itertools.count())


class Forked:
    """A child of this process: what of ``subprocess.Popen`` the tests use."""

    def __init__(self, pid: int, stdout: IO[str] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, or minus the number of the signal that ended it; None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """The same at its end; raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                polled = select.poll()
                polled.register(descriptor, select.POLLIN)
                if not polled.poll(None if timeout is None else timeout * 1000):
                    assert timeout is not None
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            finally:
                os.close(descriptor)
        status = self._reap(0)
        assert status is not None
        return status

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Reads all that it still says, and waits for its end."""
        said = ""
        if self.stdout is not None and not self.stdout.closed:
            said = self.stdout.read()
            self.stdout.close()
        self.wait(timeout)
        return said, None

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it is over."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def start(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    stderr: IO[Any] | None = None,
    stdout: IO[Any] | None = None,
    program: Sequence[str] = (COMMAND,),
    loaded: tuple[str, ...] = NODE,
) -> Forked:
    """Starts ``edgeshare`` with these arguments and nothing to read. Without files its output goes into a pipe, and
    its errors where its output goes. ``program`` is run in the place of the command: a file of Python, and arguments
    before the others. ``loaded`` is what the process that it is forked from has loaded."""
    read, write = os.pipe() if stdout is None else (None, stdout.fileno())
    chance = asdict(next(_held)) if _held is not None else None
    asked = {"command": [*program, *arguments], "environment": dict(environment), "folder": str(Path.cwd())}
    request = json.dumps({**asked, "held": chance}).encode()
    assert len(request) <= REQUEST_BYTES_MAX, "more than a nursery takes"
    nursery = _nursery(loaded, tuple(sorted(each for each in environment.items() if each[0].startswith(READ_AT_START))))
    # For no longer than this: other tests' orphans are the system's.
    _adopt(True)
    try:
        socket.send_fds(nursery, [request], [write, write if stderr is None else stderr.fileno()])
        pid = int(nursery.recv(REQUEST_BYTES_MAX))
    finally:
        _adopt(False)
        if read is not None:
            os.close(write)
    return Forked(pid, None if read is None else os.fdopen(read))


def run(
    arguments: Sequence[str],
    timeout: float,
    environment: Mapping[str, str] = os.environ,
    program: Sequence[str] = (COMMAND,),
    loaded: tuple[str, ...] = NODE,
) -> "subprocess.CompletedProcess[str]":
    """Runs ``edgeshare``, or another program in its place, to its end; raises subprocess.TimeoutExpired."""
    with TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        process = start(arguments, environment, stderr, stdout, program, loaded)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        said = []
        for stream in (stdout, stderr):
            stream.seek(0)
            said.append(stream.read())
        return subprocess.CompletedProcess([*program, *arguments], status, *said)


def _adopt(orphans: bool) -> None:
    """Has what is forked from a child of this process become its own child when that child is over, or not."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


@cache
def _nursery(loaded: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> socket.socket:
    """The connection to a nursery that has loaded this and was started with these variables: it ends with the
    connection."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(READ_AT_START)}
        begin = "import sys; from tests.kit.processes import forked; forked.nurse(*sys.argv[1:])"
        command = [sys.executable, "-P", "-c", begin, str(its.fileno()), *loaded]
        environment |= variables
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()])
    _nurseries.enter_context(process)
    return _nurseries.enter_context(ours)


def serve(connection: socket.socket) -> bool:
    """Forks for each request; returns in what was forked (True), and at the end of the connection."""
    while True:
        request, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, 2)
        if not request:
            return False
        read, write = os.pipe()
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                connection.close()
                os.close(read)
                os.close(write)
                become(json.loads(request), streams)
                return True
            os.write(write, str(pid).encode())
            os._exit(0)
        # Only when the one between is over has the other another parent.
        os.waitpid(between, 0)
        os.close(write)
        connection.send(os.read(read, 16))
        for descriptor in (read, *streams):
            os.close(descriptor)


def become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Makes this process what was asked for."""
    for place, descriptor in enumerate(streams, start=1):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = request["command"]
    if request["held"]:
        Holds(Chance(**request["held"]), of_product).begin()


def nurse(descriptor: str, *loaded: str) -> None:
    """A nursery: loads these, and forks for whom this connection leads to."""
    statuses: list[int] = []
    # What is registered before all else is run after all else.
    atexit.register(leave, statuses)
    with loading():
        for name in loaded:
            importlib.import_module(name)
    if serve(socket.socket(fileno=int(descriptor))):
        try:
            if sys.argv[0] == COMMAND:
                main()
            else:
                runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            if isinstance(end.code, int):
                statuses.append(end.code)
            raise


def leave(statuses: Sequence[int]) -> None:
    """Ends what was forked and has ended orderly, with its status, before the interpreter takes to pieces what was
    loaded, one object after the other: half of the processor time of one that does little, as all of it is copied."""
    if statuses:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(statuses[0])
