"""Two allocations, for the clients of each test of this folder."""

from collections.abc import Iterator

import pytest

from edgeshare.client import ManagerClient
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import Testbed


@pytest.fixture
def two(testbed: Testbed, calls: ManagerClient) -> Iterator[tuple[str, str]]:
    """Two allocations of one GPU, half of it each, with 100 MiB."""
    held = []
    for allocation_id in ("one", "two"):
        wanted = Allocation(id=allocation_id, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        held.append(answers)
    yield "one", "two"
    for answers in held:
        answers.close()
