"""Allocations over gRPC: added, changed, removed, and what is refused."""

from uuid import UUID

import grpc
import pytest

from edgeshare.contract.names import ALLOCATIONS_SOCKET, HOOK_CONFIG, HOOK_SOCKET
from edgeshare.v1.allocations_pb2 import (
    SHARE_CLASS_BATCH,
    SHARE_CLASS_LATENCY,
    AddAllocationRequest,
    Allocation,
    HoldAllocationRequest,
    ListAllocationsRequest,
    Owner,
    RemoveAllocationRequest,
    UpdateAllocationRequest,
)
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from tests.kit.manager.allocations import channel, half
from tests.kit.manager.testbed import GPU_MEMORY_MIB, Testbed, share


def test_an_added_allocation_has_its_defaults_and_a_socket(testbed: Testbed, stub: AllocationsStub) -> None:
    answer = stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    added = answer.allocation
    assert (added.limit_percent, added.memory_mib) == (100, GPU_MEMORY_MIB // 2)
    assert added.share_class == SHARE_CLASS_BATCH
    assert answer.socket_path == str(testbed.folder("half") / HOOK_SOCKET)
    client = testbed.join("half")
    assert client.welcome is not None
    assert client.welcome.memory_cap_bytes == (GPU_MEMORY_MIB // 2) << 20
    assert (testbed.folder("half") / HOOK_CONFIG).read_text().splitlines() == [
        "failure-policy=open",
        "grace-ms=5000",
        f"memory-cap-bytes={client.welcome.memory_cap_bytes}",
        f"device-uuids={UUID(testbed.uuids[0].removeprefix('GPU-')).hex}",
    ]


def test_the_configuration_reaches_the_clients(testbed: Testbed) -> None:
    testbed.manager(
        "failure_policy: closed\ngrace_s: 0.5\nqueue_cap_us: 700\nanticipation_us: 20\ndefault_limit: request\n"
    )
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        stub = AllocationsStub(opened)
        answer = stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    assert answer.allocation.limit_percent == 50
    welcome = testbed.join("half").welcome
    assert welcome is not None
    assert (welcome.failure_policy.name, welcome.grace_ms) == ("CLOSED", 500)
    assert (welcome.queue_cap_ns, welcome.anticipation_ns) == (700_000, 20_000)
    assert "failure-policy=closed\ngrace-ms=500\n" in (testbed.folder("half") / HOOK_CONFIG).read_text()


def test_an_owner_of_three_megabytes_is_refused_in_one_line(testbed: Testbed, stub: AllocationsStub) -> None:
    monster = Owner(namespace="team", pod="line\n" * 600_000)
    added = stub.AddAllocation(AddAllocationRequest(allocation=half(testbed))).allocation
    for call in (
        lambda: stub.AddAllocation(AddAllocationRequest(allocation=half(testbed, "other", owner=monster))),
        lambda: next(stub.HoldAllocation(HoldAllocationRequest(allocation=half(testbed, "other", owner=monster)))),
        lambda: stub.UpdateAllocation(UpdateAllocationRequest(id="half", owner=monster)),
        lambda: stub.UpdateAllocation(UpdateAllocationRequest(id="x" * 3_000_000)),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            call()
        assert raised.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
        assert len(raised.value.details()) < 500
    assert list(stub.ListAllocations(ListAllocationsRequest()).allocations) == [added]


def test_adding_it_once_more_changes_nothing(testbed: Testbed, stub: AllocationsStub) -> None:
    first = stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    client = testbed.join("half")
    assert stub.AddAllocation(AddAllocationRequest(allocation=half(testbed))) == first
    assert stub.AddAllocation(AddAllocationRequest(allocation=first.allocation)) == first
    client.request()
    client.granted()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"request_percent": 0}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"request_percent": 130}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"limit_percent": 40}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"memory_mib": GPU_MEMORY_MIB + 1}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"id": "../escape"}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"id": ""}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"device_ids": []}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"device_ids": ["GPU-none"]}, grpc.StatusCode.NOT_FOUND),
        ({"request_percent": 60}, grpc.StatusCode.RESOURCE_EXHAUSTED),
        ({"request_percent": 10, "memory_mib": GPU_MEMORY_MIB - 1}, grpc.StatusCode.RESOURCE_EXHAUSTED),
        ({"id": "first", "request_percent": 40}, grpc.StatusCode.ALREADY_EXISTS),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    testbed: Testbed, stub: AllocationsStub, changes: dict[str, object], code: grpc.StatusCode
) -> None:
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed, "first")))
    before = stub.ListAllocations(ListAllocationsRequest())
    folders = set((testbed.runtime_dir / "clients").iterdir())
    wrong = half(testbed)
    wrong.MergeFrom(Allocation(**{key: value for key, value in changes.items() if value}))  # type: ignore[arg-type]
    for key, value in changes.items():
        if not value:
            wrong.ClearField(key)  # type: ignore[arg-type]
        elif key == "device_ids":
            wrong.device_ids[:] = value  # type: ignore[index]
    with pytest.raises(grpc.RpcError) as caught:
        stub.AddAllocation(AddAllocationRequest(allocation=wrong))
    assert caught.value.code() is code
    assert "\n" not in caught.value.details()
    assert stub.ListAllocations(ListAllocationsRequest()) == before
    assert set((testbed.runtime_dir / "clients").iterdir()) == folders


def test_an_update_changes_what_it_names(testbed: Testbed, stub: AllocationsStub) -> None:
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    updated = stub.UpdateAllocation(UpdateAllocationRequest(id="half", limit_percent=70)).allocation
    assert (updated.limit_percent, updated.share_class) == (70, SHARE_CLASS_BATCH)
    owner = Owner(namespace="team", pod="train")
    updated = stub.UpdateAllocation(
        UpdateAllocationRequest(id="half", share_class=SHARE_CLASS_LATENCY, owner=owner)
    ).allocation
    assert (updated.limit_percent, updated.share_class, updated.owner) == (70, SHARE_CLASS_LATENCY, owner)
    assert share(testbed.status(), "half").allocation == updated
    for request, code in (
        (UpdateAllocationRequest(id="half", limit_percent=40), grpc.StatusCode.INVALID_ARGUMENT),
        (UpdateAllocationRequest(id="none", limit_percent=70), grpc.StatusCode.NOT_FOUND),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            stub.UpdateAllocation(request)
        assert caught.value.code() is code
    assert share(testbed.status(), "half").allocation == updated


def test_a_removed_allocation_leaves_nothing_and_its_clients_are_told(testbed: Testbed, stub: AllocationsStub) -> None:
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    client = testbed.join("half")
    stub.RemoveAllocation(RemoveAllocationRequest(id="half"))
    assert client.ended()
    assert client.epoch == 0
    assert not testbed.folder("half").exists()
    assert not stub.ListAllocations(ListAllocationsRequest()).allocations
    stub.RemoveAllocation(RemoveAllocationRequest(id="half"))
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed, request_percent=100)))


def test_a_folder_that_is_there_already_is_used(testbed: Testbed, stub: AllocationsStub) -> None:
    testbed.folder("half").mkdir()
    inode = testbed.folder("half").stat().st_ino
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    assert testbed.folder("half").stat().st_ino == inode
    testbed.join("half")
