"""Processes that nobody can look at just now, for want of a descriptor."""

import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.events import Events
from sharemgr.node.sockets.closer import Closer
from sharemgr.node.sockets.peers import Peer, start_time
from sharemgr.node.unmanaged import LINES_BURST, UnmanagedProcesses


@pytest.fixture
def out_of_descriptors(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, makes it so that no file can be opened."""

    def begin() -> None:
        def refuse(*_: object, **__: object) -> bytes:
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(Path, "read_bytes", refuse)
        monkeypatch.setattr(os, "pidfd_open", refuse)
        monkeypatch.setattr("sharemgr.node.sockets.peers._SO_PEERPIDFD", 9999)

    return begin


def test_who_cannot_be_looked_at_is_not_taken_for_dead_or_stopped(
    monkeypatch: pytest.MonkeyPatch, out_of_descriptors: Callable[[], None]
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with monkeypatch.context() as older:
            # Before Linux 5.3.
            older.setattr("sharemgr.node.sockets.peers._open_pidfd", lambda connection, pid: -1)
            peer = Peer(ours)
        out_of_descriptors()
        assert peer.alive()
        assert not peer.stopped()


def test_who_cannot_be_watched_is_not_taken_for_gone(out_of_descriptors: Callable[[], None]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        out_of_descriptors()
        with pytest.raises(OSError, match="Too many open files"):
            Peer(ours)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_where_processes_cannot_be_watched_one_is_let_in_all_the_same(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """An older kernel; a filter of system calls that does not know the call (seccomp)."""

    def refuse(pid: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    monkeypatch.setattr("sharemgr.node.sockets.peers._SO_PEERPIDFD", 9999)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        peer = Peer(ours)
        assert peer.pidfd == -1
        assert peer.alive()


def test_who_has_ended_is_gone() -> None:
    assert start_time(os.getpid()) is not None
    assert start_time(2**22 + 1) is None


def test_an_unmanaged_process_that_cannot_be_looked_at_is_told_of_once(
    out_of_descriptors: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    unmanaged = UnmanagedProcesses(Events("", None))
    unmanaged.seen({"GPU-a": [os.getpid()]}, ())
    assert len(caplog.messages) == 1
    out_of_descriptors()
    # One that is known, and one that is new.
    unmanaged.seen({"GPU-a": [os.getpid(), os.getppid()]}, ())
    assert len(caplog.messages) == 1


def test_unmanaged_processes_without_end_are_told_of_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now_ns = 0
    unmanaged = UnmanagedProcesses(Events("", None), lambda: now_ns)
    # No process has such a pid (PID_MAX_LIMIT).
    first = 2**22 + 1
    for pid in range(first, first + LINES_BURST + 5):
        unmanaged.seen({"GPU-1": [pid]}, [])
    now_ns = 60 * NS_PER_S
    unmanaged.seen({"GPU-1": [first + 100]}, [])
    told = [(int(message.split()[1].strip(",")), message.partition("tells of it")[2]) for message in caplog.messages]
    assert told[:-1] == [(pid, "") for pid in range(first, first + LINES_BURST)]
    assert told[-1] == (first + 100, " (5 more since the last such line)")


def test_a_flood_of_unmanaged_processes_hides_none_that_comes_after_it(caplog: pytest.LogCaptureFixture) -> None:
    now_ns = 0
    unmanaged = UnmanagedProcesses(Events("", None), lambda: now_ns)
    first = 2**22 + 1
    for pid in range(first, first + 1000):
        unmanaged.seen({"GPU-1": [pid]}, [])
    caplog.clear()
    now_ns = 60 * NS_PER_S
    unmanaged.seen({"GPU-1": [first + 1000]}, [])
    (said,) = caplog.messages
    assert said.startswith(f"process {first + 1000}, ")


def test_threads_that_cannot_be_started_are_said_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        for _ in range(3):
            # As a kernel does that cannot be told to refuse what clients pass.
            closer = Closer(listener)
            closer._close([os.open(os.devnull, os.O_RDONLY)])
            for descriptor in closer._waiting:
                os.close(descriptor)
    (said,) = caplog.messages
    assert said.startswith("no thread can be started to close what clients passed in: can't start new thread")
