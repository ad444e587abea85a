"""The manager's service for allocations, for each test of this folder."""

from collections.abc import Iterator

import pytest

from edgeshare.contract.names import ALLOCATIONS_SOCKET
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from tests.kit.manager.allocations import channel
from tests.kit.manager.testbed import Manager, Testbed


@pytest.fixture
def stub(testbed: Testbed, manager: Manager) -> Iterator[AllocationsStub]:
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        yield AllocationsStub(opened)
