"""What ``edgeshare run`` says while a manager that is there cannot give it its share back."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc

from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.v1.allocations_pb2 import HoldAllocationRequest, HoldAllocationResponse
from edgeshare.v1.status_pb2 import DeviceStatus, NodeStatus
from tests.kit.processes.waiting import PATIENCE_S

NO_ROOM = "hook.sock cannot be made: No space left on device"


class Full:
    """A manager whose disk is full each time that it is asked, but the first time and the fourth."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held = 0

    def status(self, _: NodeStatus, context: grpc.ServicerContext) -> NodeStatus:
        return NodeStatus(devices=[DeviceStatus(id="GPU-1", healthy=True, memory_mib=1000)])

    def hold(self, request: HoldAllocationRequest, context: grpc.ServicerContext) -> Iterator[HoldAllocationResponse]:
        self._held += 1
        if self._held in (1, 4):
            yield HoldAllocationResponse(allocation=request.allocation, socket_path=str(self._folder / "hook.sock"))
        if self._held == 4:
            context.abort(grpc.StatusCode.NOT_FOUND, "it was removed")
        context.abort(grpc.StatusCode.UNAVAILABLE, NO_ROOM)

    def services(self) -> "list[grpc.GenericRpcHandler[Any, Any]]":
        """What a server is given."""
        status = grpc.unary_unary_rpc_method_handler(
            self.status,
            request_deserializer=NodeStatus.FromString,
            response_serializer=NodeStatus.SerializeToString,
        )
        hold = grpc.unary_stream_rpc_method_handler(
            self.hold,
            request_deserializer=HoldAllocationRequest.FromString,
            response_serializer=HoldAllocationResponse.SerializeToString,
        )
        return [
            grpc.method_handlers_generic_handler("edgeshare.v1.ShareStatus", {"GetNodeStatus": status}),
            grpc.method_handlers_generic_handler("edgeshare.v1.Allocations", {"HoldAllocation": hold}),
        ]


def test_the_same_reason_is_said_once_however_often_it_is_tried(tmp_path: Path) -> None:
    waits = [sys.executable, "-c", "import signal; signal.pause()"]
    run = [
        sys.executable,
        "-m",
        "edgeshare.cli",
        "run",
        "--runtime-dir",
        str(tmp_path),
        "--percent",
        "30",
        "--",
        *waits,
    ]
    with futures.ThreadPoolExecutor(2) as threads:
        manager = grpc.server(threads, handlers=Full(tmp_path).services())
        for name in (STATUS_SOCKET, ALLOCATIONS_SOCKET):
            manager.add_insecure_port(f"unix:{tmp_path / name}")
        manager.start()
        with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said: list[str] = []
            while not said or "it was removed" not in said[-1]:
                said.append(process.stderr.readline())
                assert said[-1], said
            process.terminate()
            process.wait(PATIENCE_S)
        manager.stop(None).wait()
    lost = (
        f"edgeshare run: lost the share: {tmp_path / ALLOCATIONS_SOCKET} is listened on, but the call failed: {NO_ROOM}"
    )
    assert [line.partition(": try again")[0].rstrip("\n") for line in said] == [
        lost,
        "edgeshare run: holding the share again",
        "edgeshare run: lost the share: it was removed",
    ]
