"""Which process is at the other end of a client's socket, and whether it still lives."""

import errno
import os
import socket
import struct
from pathlib import Path

_UCRED = struct.Struct("iII")  # pid, uid, gid: struct ucred of socket(7)
_SO_PEERPIDFD = 77  # asm-generic/socket.h, Linux 6.5 and later


NOT_WATCHED = (errno.ENOSYS, errno.EPERM)
"""An older kernel has no such call; an older container runtime's filter refuses what it does not know."""


class PeerGoneError(Exception):
    """The process had ended before it could be watched."""


class Peer:
    """The process that connected a socket.

    A forked child inherits its parent's socket, so that a dead client's connection may never end:
    therefore its process itself is watched. ``pidfd`` becomes readable when it ends; where there is
    none (before Linux 5.3) it is -1 and ``alive`` has to be asked.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Raises PeerGoneError, and OSError where it cannot be watched."""
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        self.pid: int = _UCRED.unpack(credentials)[0]
        """In our pid namespace; 0 where the client's process is not in it, so that only its socket can
        tell its end."""
        self.pidfd = _open_pidfd(connection, self.pid)
        self._started = start_time(self.pid) if self.pidfd < 0 and self.pid else None

    def alive(self) -> bool:
        """Whether the process still runs, as far as can be told without a pidfd."""
        try:
            return self._started is None or start_time(self.pid) == self._started
        except OSError:
            # Nobody can look just now, for want of a descriptor.
            return True

    def stopped(self) -> bool:
        """Whether the process is stopped (SIGSTOP, or a debugger), so that it gives nothing back."""
        try:
            fields = _stat(self.pid) if self.pid else None
        except OSError:
            return False
        return fields is not None and fields[0] in ("T", "t")

    def close(self) -> None:
        """Watches no more."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pidfd = -1


def start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot, as in /proc; None where there is no such process.
    Raises OSError where /proc cannot be read.

    Together with the pid it names a process for good: pids are used again, this pair is not.
    """
    fields = _stat(pid)
    # Field 22 of proc_pid_stat(5).
    return fields[19] if fields is not None else None


def process_start(pid: int) -> str | None:
    """When a process started, as ``start_time`` has it; None, too, where nobody can look just now."""
    try:
        return start_time(pid)
    except OSError:
        return None


def running(pid: int, started: str | None) -> bool:
    """Whether the process of that pid and start still runs; also where nobody can look just now. One that has ended and
    that its parent has not asked for does not."""
    try:
        fields = _stat(pid) if started is not None else None
    except OSError:
        return True
    # Fields 3, 20 and 22 of proc_pid_stat(5): a first thread that has ended may leave others behind.
    return fields is not None and fields[19] == started and (fields[0] not in ("Z", "X") or int(fields[17]) > 1)


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third (the state) on; None where there is no such process. Raises OSError
    where it cannot be read."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold anything, bytes that are no text included.
    return content.rpartition(b")")[2].decode("ascii").split()


def _open_pidfd(connection: socket.socket, pid: int) -> int:
    if pid == 0:
        return -1
    try:
        # Of the very process that connected, whatever became of its pid.
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        pass
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in NOT_WATCHED:
            return -1
        if error.errno == errno.ESRCH:
            raise PeerGoneError(f"process {pid} ended before it could be watched") from error
        raise
