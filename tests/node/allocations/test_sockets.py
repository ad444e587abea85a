"""The manager's sockets: who answers there, what is served beside the services, and where nobody does."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ALLOCATIONS_SOCKET, STATUS_SOCKET
from edgeshare.v1.status_pb2 import WatchSharesRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from tests.kit.manager.allocations import channel
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.processes.waiting import PATIENCE_S


def test_no_manager_is_said_with_the_socket(testbed: Testbed) -> None:
    with testbed.calls() as calls, pytest.raises(Unavailable, match="no share manager answers at") as caught:
        calls.status()
    assert str(testbed.runtime_dir / STATUS_SOCKET) in str(caught.value)


def test_watching_begins_at_once_and_refuses_to_be_hurried(testbed: Testbed, manager: Manager) -> None:
    with channel(testbed, STATUS_SOCKET) as opened:
        stub = ShareStatusStub(opened)
        statuses = stub.WatchShares(WatchSharesRequest(interval_ns=100_000_000), timeout=PATIENCE_S)
        assert [len(next(statuses).devices) for _ in range(3)] == [2, 2, 2]
        statuses.cancel()
        with pytest.raises(grpc.RpcError) as caught:
            next(stub.WatchShares(WatchSharesRequest(interval_ns=99_999_999)))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("name", "service"),
    [(STATUS_SOCKET, "edgeshare.v1.ShareStatus"), (ALLOCATIONS_SOCKET, "edgeshare.v1.Allocations")],
)
def test_each_socket_has_health_and_reflection(testbed: Testbed, manager: Manager, name: str, service: str) -> None:
    with channel(testbed, name) as opened:
        health = health_pb2_grpc.HealthStub(opened)
        for asked in ("", service):
            answer = health.Check(health_pb2.HealthCheckRequest(service=asked))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflected = ProtoReflectionDescriptorDatabase(opened)
        assert service in reflected.get_services()
        assert reflected.FindFileContainingSymbol(service).package == "edgeshare.v1"
