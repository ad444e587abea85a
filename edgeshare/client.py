"""A client of the node's share manager: its two sockets as plain calls, its errors as ours."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import grpc

from edgeshare.contract.address import check_socket_path
from edgeshare.contract.errors import EdgeshareError, Unavailable
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.contract.text import in_one_line
from edgeshare.rpc import SAID_MAX, connect_error, error_from
from edgeshare.v1.allocations_pb2 import Allocation, HoldAllocationRequest, HoldAllocationResponse
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from edgeshare.v1.status_pb2 import GetNodeStatusRequest, NodeStatus, Turns, WatchSharesRequest, WatchTurnsRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub

CALL_TIMEOUT_S = 10
"""For calls that a manager answers in milliseconds: only a stopped one takes longer."""

CHANNEL_OPTIONS = (
    # A manager that comes back is found again within half a second instead of gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class ManagerClient:
    """The manager that serves ``runtime_dir``. A context manager; safe for several threads.

    Every call raises Unavailable, in a line that names the socket, where no manager answers there.
    """

    def __init__(self, runtime_dir: Path) -> None:
        """Raises InvalidRequest where the folder's path leaves no room for a socket's name."""
        self._status_path = runtime_dir / STATUS_SOCKET
        self._allocations_path = runtime_dir / ALLOCATIONS_SOCKET
        check_socket_path(self._allocations_path, "name a shorter --runtime-dir")
        self._status_channel = grpc.insecure_channel(f"unix:{self._status_path}", CHANNEL_OPTIONS)
        self._allocations_channel = grpc.insecure_channel(f"unix:{self._allocations_path}", CHANNEL_OPTIONS)
        self._status = ShareStatusStub(self._status_channel)
        self._allocations = AllocationsStub(self._allocations_channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the calls that are under way, and the connections."""
        self._status_channel.close()
        self._allocations_channel.close()

    def status(self) -> NodeStatus:
        """Who has which share, now."""
        with translated_errors(self._status_path):
            return self._status.GetNodeStatus(GetNodeStatusRequest(), timeout=CALL_TIMEOUT_S)

    def watch(self, interval_ns: int) -> Iterator[NodeStatus]:
        """Who has which share, at once and then every ``interval_ns``, until the manager ends."""
        with translated_errors(self._status_path):
            yield from self._status.WatchShares(WatchSharesRequest(interval_ns=interval_ns))

    def turns(self, timeout_s: float) -> Iterator[Turns]:
        """What is decided of the turns of all devices, as it is, until the manager ends; for at most so long. Raises
        NoRoom where too many ask for it."""
        with translated_errors(self._status_path):
            yield from self._status.WatchTurns(WatchTurnsRequest(), timeout=timeout_s)

    def hold(self, allocation: Allocation, wait_for_manager: bool) -> Generator[HoldAllocationResponse, None, None]:
        """Adds an allocation that lives until this generator, or the client, is closed; yields once when
        it is there.

        With ``wait_for_manager`` it waits until there is a manager. Raises InvalidRequest, NotFound,
        NoRoom and AlreadyExists as HoldAllocation tells them.
        """
        request = HoldAllocationRequest(allocation=allocation)
        with translated_errors(self._allocations_path):
            yield from self._allocations.HoldAllocation(request, wait_for_ready=wait_for_manager)


@contextmanager
def translated_errors(socket: Path) -> Iterator[None]:
    """Turns gRPC's errors into ours; ``socket`` is where the call went to."""
    try:
        yield
    except ValueError as error:
        # What gRPC raises for a call on a channel that another thread has closed.
        raise Unavailable(f"the connection to {socket} was closed here") from error
    except grpc.RpcError as error:
        call = cast(grpc.Call, error)  # every error of a call is the call itself
        raise _translate(call.code(), call.details() or "", socket) from error


def _translate(code: grpc.StatusCode, text: str, socket: Path) -> EdgeshareError:
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return Unavailable(f"the share manager at {socket} does not answer: is it stopped?")
    if code is not grpc.StatusCode.UNAVAILABLE:
        return error_from(code, text)
    match connect_error(socket):
        case None:
            # Its own words, or gRPC's for a connection that broke.
            return Unavailable(
                f"{socket} is listened on, but the call failed: {in_one_line(text, SAID_MAX)}: try again, look into "
                "the share manager's log, or name another --runtime-dir"
            )
        case FileNotFoundError() | ConnectionRefusedError():
            return Unavailable(
                f"no share manager answers at {socket}: start one with "
                f"'edgeshare sharemgr node --runtime-dir {socket.parent}', or name another --runtime-dir"
            )
        case PermissionError():
            return Unavailable(f"{socket} is open to root and the manager's own user only: run this as one of them")
        case error:
            why = error.strerror or error
            return Unavailable(f"{socket} cannot be connected to: {why}: name another --runtime-dir")
