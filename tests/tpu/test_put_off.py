"""A program that the manager knows and cannot pass its page yet."""

import select
import socket
import sys
import termios
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from cuda_hook import wire
from cuda_hook.gate import GatePages
from edgeshare.contract.names import HOOK_SOCKET
from tests.kit.processes.waiting import PATIENCE_S
from tests.kit.tpu.tpu_lab import APEX, Lab, line, tell

GRACE_S = 3
TOLD = 32
"""So often it is told to wait: it looks ten times a second, so that this takes longer than the grace time."""

LOOK_S = 0.01
OPENS = f"""
import os, sys
fd = os.open({APEX!r}, os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
os.close(fd)
"""
WELCOME = wire.Welcome(wire.VERSION, wire.FailurePolicy.OPEN, GRACE_S * 1000, 1, 0, 0, 0)


@pytest.fixture
def folder(lab: Lab) -> Path:
    """That of an allocation whose manager has ended."""
    manager = lab.manager(f"grace_s: {GRACE_S}\n")
    made = lab.allocate("mine", 30)
    manager.kill()
    return made


@pytest.fixture
def listener(folder: Path) -> Iterator[socket.socket]:
    """Where the test stands in for the manager."""
    path = folder / HOOK_SOCKET
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.settimeout(PATIENCE_S)
        listening.bind(str(path))
        listening.listen(1)
        yield listening


def said(connection: socket.socket) -> wire.ClientRecord:
    return wire.parse(connection.recv(wire.RECORD_BYTES_MAX))


def tell_to_wait(connection: socket.socket) -> None:
    """Tells the client, and returns when it has heard that."""
    connection.send(wire.encode(wire.Wait()))
    deadline_s = time.monotonic() + PATIENCE_S
    while int.from_bytes(ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder):
        assert time.monotonic() < deadline_s, "it does not read"
        time.sleep(LOOK_S)


def test_one_that_is_told_to_wait_opens_nothing_and_joins_over_the_same_connection(
    lab: Lab, listener: socket.socket
) -> None:
    process = lab.client("mine", OPENS)
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(PATIENCE_S)
        hello = said(connection)
        assert isinstance(hello, wire.Hello)
        assert hello.version_max >= 3
        for _ in range(TOLD):
            tell_to_wait(connection)
        assert select.select([process.stdout], [], [], 0)[0] == []
        pages = GatePages.create(WELCOME.epoch)
        socket.send_fds(connection, [wire.encode(WELCOME)], pages.fds)
        pages.close_fds()
        assert said(connection) == wire.Request()
        pages.open(1, False, time.monotonic_ns(), 0)
        assert line(process) == "open"
        tell(process)
        released = said(connection)
        assert isinstance(released, wire.Release)
        assert released.number == 1
