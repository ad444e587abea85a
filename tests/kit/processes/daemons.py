"""Long-running processes that outlive the script which started them."""

import contextlib
import os
import select
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.kit.processes.errors import NodeError
from tests.kit.programs.packages import SYSTEM_PATH

LOG_LINES = 12
PROBE_MS = 50
GO = {"GOGC": "400"}
"""Processors are scarcer than memory here: a program in Go collects when its heap is five times what was in use, not at
twice that (https://go.dev/doc/gc-guide)."""


class Daemons:
    """The processes whose pid files are in `folder`/pids and whose output is in `folder`/logs."""

    def __init__(self, folder: Path) -> None:
        self._pids = folder / "pids"
        self._logs = folder / "logs"

    def log(self, name: str) -> Path:
        """The file that holds what the daemon wrote."""
        return self._logs / f"{name}.log"

    def forget_logs(self) -> None:
        """Remove what earlier daemons wrote."""
        shutil.rmtree(self._logs, ignore_errors=True)

    def start(self, name: str, command: Sequence[str | Path]) -> None:
        """Start `command` in a session of its own, unless it runs already."""
        if self.runs(name):
            return
        self._pids.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        argv = [str(word) for word in command]
        with Path(os.devnull).open("rb") as nothing, self.log(name).open("ab") as log:
            pid = os.posix_spawn(
                argv[0],
                argv,
                # Nothing of the caller's: a proxy or an ETCD_… variable would change what the daemon does.
                {"PATH": SYSTEM_PATH, **GO},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                ],
                setsid=True,
                # Python ignores SIGPIPE and a terminal's Ctrl-C may be masked; a daemon starts with neither.
                setsigdef=[signal.SIGPIPE, signal.SIGINT],
                setsigmask=[],
            )
        # At once: others look whether it runs meanwhile.
        new = self._pids.with_name(f"{name}.pid")
        new.write_text(f"{pid} {_started_ticks(pid)}\n")
        new.replace(self._pids / name)

    def runs(self, name: str) -> bool:
        """Whether the process that was started under this name still runs."""
        pidfd = self._open(name)
        if pidfd is None:
            return False
        os.close(pidfd)
        return True

    def pid(self, name: str) -> int:
        """The process that was started under this name. Raises NodeError where it does not run."""
        if not self.runs(name):
            raise NodeError(f"{name} does not run")
        return int((self._pids / name).read_text().split()[0])

    def wait_until(self, name: str, ready: Callable[[], bool], timeout_s: float) -> None:
        """Return when `ready()` is true; raises NodeError when the process ends first or the time is over."""
        pidfd = self._open(name)
        if pidfd is None:
            raise NodeError(self._obituary(name, "ended at once"))
        try:
            for _ in range(int(timeout_s * 1000 / PROBE_MS)):
                if ready():
                    return
                if _ended(pidfd, PROBE_MS):
                    raise NodeError(self._obituary(name, "ended before it was ready"))
        finally:
            os.close(pidfd)
        raise NodeError(self._obituary(name, f"was not ready after {timeout_s:.0f} s"))

    def stop(self, name: str, grace_s: float) -> None:
        """End the process with SIGTERM, after `grace_s` with SIGKILL, and return when it is gone."""
        if not self._signal(name, signal.SIGTERM, grace_s):
            self._signal(name, signal.SIGKILL, None)
        (self._pids / name).unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """End the process without a word, and return when it is gone."""
        self._signal(name, signal.SIGKILL, None)
        (self._pids / name).unlink(missing_ok=True)

    def hang(self, name: str, hung: bool) -> None:
        """Keep the process from running, or let it go on; who calls it waits."""
        pidfd = self._open(name)
        if pidfd is not None:
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGSTOP if hung else signal.SIGCONT)
            finally:
                os.close(pidfd)

    def crash(self) -> None:
        """Kill every process, as a machine that is out of memory does, and return when they are gone."""
        for pid_file in self._pids.iterdir():
            self._signal(pid_file.name, signal.SIGKILL, None)

    def _signal(self, name: str, number: signal.Signals, wait_s: float | None) -> bool:
        """Send a signal and wait for the end; whether it came (also when the process was gone before)."""
        pidfd = self._open(name)
        if pidfd is None:
            return True
        try:
            signal.pidfd_send_signal(pidfd, number)
            gone = _ended(pidfd, None if wait_s is None else wait_s * 1000)
        except ProcessLookupError:  # It ended between the look and the signal.
            gone = True
        finally:
            os.close(pidfd)
        if gone:
            self._reap(name)
        return gone

    def _open(self, name: str) -> int | None:
        """A pidfd of the running process, or None. Its start time tells it from a later one of its number."""
        try:
            pid, ticks = (int(word) for word in (self._pids / name).read_text().split())
            pidfd = os.pidfd_open(pid)
        except (FileNotFoundError, ProcessLookupError):
            return None
        if _started_ticks(pid) == ticks and not _ended(pidfd, 0):
            return pidfd
        os.close(pidfd)
        self._reap(name)
        return None

    def _reap(self, name: str) -> None:
        # Only the script that started it is its parent; for any other, init has reaped it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(int((self._pids / name).read_text().split()[0]), os.WNOHANG)

    def _obituary(self, name: str, what: str) -> str:
        log = self.log(name)
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_LINES:])
        return f"{name} {what}; the end of {log}:\n{tail}"


def _ended(pidfd: int, timeout_ms: float | None) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout_ms))


def _started_ticks(pid: int) -> int:
    """Clock ticks from the boot to the process' start (field 22 of proc_pid_stat(5)); -1 when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return int(stat.rpartition(")")[2].split()[19])
