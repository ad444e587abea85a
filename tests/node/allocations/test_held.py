"""Allocations that live as long as the call that holds them, and the manager's errors at its other end."""

import json

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound
from edgeshare.contract.names import HOOK_SOCKET
from edgeshare.v1.allocations_pb2 import RemoveAllocationRequest
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from tests.kit.manager.allocations import half
from tests.kit.manager.testbed import Manager, Testbed, ids


def test_a_held_allocation_lives_as_long_as_its_call(testbed: Testbed, manager: Manager) -> None:
    with testbed.calls() as calls:
        answers = calls.hold(half(testbed), wait_for_manager=False)
        assert next(answers).socket_path == str(testbed.folder("half") / HOOK_SOCKET)
        assert list(ids(testbed.status())) == ["half"]
        assert json.loads((testbed.state_dir / "allocations.json").read_text())["allocations"] == []
        client = testbed.join("half")
    testbed.until(lambda status: not status.allocations)
    assert client.ended()
    assert not testbed.folder("half").exists()


def test_a_held_allocation_that_is_removed_ends_its_call(testbed: Testbed, stub: AllocationsStub) -> None:
    with testbed.calls() as calls:
        answers = calls.hold(half(testbed), wait_for_manager=False)
        next(answers)
        stub.RemoveAllocation(RemoveAllocationRequest(id="half"))
        with pytest.raises(NotFound, match="half was removed"):
            next(answers)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"request_percent": 130}, InvalidRequest),
        ({"device_ids": ["GPU-none"]}, NotFound),
        ({"request_percent": 60}, NoRoom),
        ({"id": "first"}, AlreadyExists),
    ],
)
def test_the_managers_errors_are_ours_at_the_other_end(
    testbed: Testbed, manager: Manager, changes: dict[str, object], error: type[Exception]
) -> None:
    with testbed.calls() as calls:
        first = calls.hold(half(testbed, "first"), wait_for_manager=False)
        next(first)
        with pytest.raises(error):
            next(calls.hold(half(testbed, **{"allocation_id": "second", **changes}), wait_for_manager=False))
        assert list(ids(calls.status())) == ["first"]
