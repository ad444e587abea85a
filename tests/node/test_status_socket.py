"""The two gRPC sockets beside somebody who means no good: the status, which any user of the node may reach, and calls
of the allocations answer, and new programs join."""

import errno
import os
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress

import grpc
import pytest

from bench.host import descriptors
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.rpc import CONNECTIONS_MAX
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import WatchSharesRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from sharemgr.node.service import STATUS_CALLS_MAX, STATUS_STREAMS_MAX
from tests.kit.manager.passing import OLDER_KERNEL, lingering, passes
from tests.kit.manager.testbed import EDGESHARE, Testbed
from tests.kit.processes.rights import only_root

NOBODY = 65534
OPEN_MAX = 256
FEW = ("prlimit", f"--nofile={OPEN_MAX}", EDGESHARE)
"""So few descriptors the manager may have: fewer than whoever comes may open connections."""
GARBAGE, GARBAGE_CALLS = b"\xff" * 10, 20
"""No message of any kind; and so often it is sent."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def connected(testbed: Testbed, name: str = STATUS_SOCKET) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(testbed.runtime_dir / name))
    return connection


def error_of_nobody(testbed: Testbed, name: str) -> int:
    """Why a user without rights cannot connect; 0: it can."""
    pid = os.fork()
    if pid == 0:
        os.setuid(NOBODY)
        with socket.socket(socket.AF_UNIX) as client:
            os._exit(client.connect_ex(str(testbed.runtime_dir / name)))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def add(testbed: Testbed, name: str) -> Iterator[object]:
    """An allocation, for as long as what is returned is not closed."""
    with testbed.calls() as calls:
        wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
        yield from calls.hold(wanted, wait_for_manager=False)


@pytest.mark.parametrize("name", [STATUS_SOCKET, ALLOCATIONS_SOCKET])
def test_the_kernel_refuses_to_pass_descriptors_along(testbed: Testbed, name: str) -> None:
    testbed.manager()
    with connected(testbed, name) as connection, lingering() as file:
        assert not passes(connection, PREFACE, file)


@only_root
def test_on_an_older_kernel_strangers_cannot_pass_any_as_they_cannot_connect(testbed: Testbed) -> None:
    manager = testbed.manager(command=OLDER_KERNEL)
    assert [error_of_nobody(testbed, name) for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET)] == [errno.EACCES] * 2
    assert "status.sock: root and this manager's user alone may connect" in manager.log()
    assert testbed.status().devices


@pytest.mark.parametrize("said", [b"", PREFACE], ids=["silent", "begun"])
def test_connections_of_strangers_keep_nobody_from_joining(testbed: Testbed, said: bytes) -> None:
    manager = testbed.manager(command=FEW)
    with ExitStack() as stack:
        next(stack.enter_context(closing(add(testbed, "good"))))
        before = descriptors(manager.process.pid)
        connections = [stack.enter_context(connected(testbed)) for _ in range(OPEN_MAX)]
        for connection in connections:
            # Those that are too many are sent away.
            with suppress(ConnectionError):
                connection.sendall(said)
        client = testbed.join("good")
        client.request()
        client.granted()
        until_sent_away(connections, OPEN_MAX - CONNECTIONS_MAX)
        assert descriptors(manager.process.pid) <= before + CONNECTIONS_MAX + 4
        # Silent ones are, too, after a while.
        until_sent_away(connections, OPEN_MAX)
        assert testbed.status().devices


def test_who_follows_and_does_not_read_keeps_nobody_from_asking(testbed: Testbed) -> None:
    testbed.manager()
    with grpc.insecure_channel(f"unix:{testbed.runtime_dir / STATUS_SOCKET}") as channel:
        streams = [ShareStatusStub(channel).WatchShares(WatchSharesRequest()) for _ in range(STATUS_CALLS_MAX)]
        codes = [code_of(stream) for stream in streams]
        assert codes.count(None) == STATUS_STREAMS_MAX
        assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == len(streams) - STATUS_STREAMS_MAX
        assert testbed.status().devices


def test_messages_that_cannot_be_read_are_refused_and_said_in_one_line(testbed: Testbed) -> None:
    manager = testbed.manager()
    before = manager.log()
    with grpc.insecure_channel(f"unix:{testbed.runtime_dir / STATUS_SOCKET}") as channel:
        for name in ("edgeshare.v1.ShareStatus/GetNodeStatus", "grpc.health.v1.Health/Check"):
            call = channel.unary_unary(f"/{name}")
            for _ in range(GARBAGE_CALLS):
                with pytest.raises(grpc.RpcError):
                    call(GARBAGE)
        assert code_of(channel.unary_stream("/edgeshare.v1.ShareStatus/WatchShares")(GARBAGE)) is not None
    assert testbed.status().devices
    (line,) = manager.log().removeprefix(before).splitlines()
    assert line.endswith("a call is refused: its message cannot be read")


def code_of(stream: Iterator[object]) -> grpc.StatusCode | None:
    """Why nothing comes of it; None: something does."""
    try:
        next(stream)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return None


def until_sent_away(connections: Sequence[socket.socket], least: int) -> None:
    """Waits until so many of them were, by an end or an error; what they are told until then is read."""
    looked = select.poll()
    left = {connection.fileno(): connection for connection in connections}
    for fd in left:
        looked.register(fd, select.POLLIN)
    while len(connections) - len(left) < least:
        for fd, _ in looked.poll():
            with suppress(ConnectionError):
                if left[fd].recv(1 << 16):
                    continue
            looked.unregister(fd)
            del left[fd]
