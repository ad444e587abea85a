"""Allocations over gRPC: added, changed, removed, and what outlives the manager."""

import json
from collections.abc import Iterator

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.names import ALLOCATIONS_SOCKET, HOOK_CONFIG, HOOK_SOCKET, STATUS_SOCKET
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
from edgeshare.v1.status_pb2 import WatchSharesRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from simgpu.trees import add_pcie_edgetpu
from tests.kit.manager.testbed import GPU_MEMORY_MIB, Manager, Testbed, ids, share
from tests.kit.processes.waiting import PATIENCE_S


@pytest.fixture
def stub(testbed: Testbed, manager: Manager) -> Iterator[AllocationsStub]:
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        yield AllocationsStub(opened)


def channel(testbed: Testbed, name: str) -> grpc.Channel:
    return grpc.insecure_channel(f"unix:{testbed.runtime_dir / name}")


def half(testbed: Testbed, allocation_id: str = "half", **fields: object) -> Allocation:
    wanted: dict[str, object] = {"id": allocation_id, "device_ids": testbed.uuids[:1], "request_percent": 50, **fields}
    return Allocation(**wanted)  # type: ignore[arg-type]


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


def test_allocations_survive_the_manager_and_their_folders_stay(testbed: Testbed) -> None:
    owner = Owner(namespace="team", pod="train", pod_uid="4711", container="main")
    for ending in ("end", "kill"):
        manager = testbed.manager()
        with channel(testbed, ALLOCATIONS_SOCKET) as opened:
            stub = AllocationsStub(opened)
            stub.AddAllocation(AddAllocationRequest(allocation=half(testbed, owner=owner)))
            before = stub.ListAllocations(ListAllocationsRequest())
        client = testbed.join("half")
        inode = testbed.folder("half").stat().st_ino
        getattr(manager, ending)()
        assert client.ended()
        again = testbed.manager()
        with channel(testbed, ALLOCATIONS_SOCKET) as opened:
            assert AllocationsStub(opened).ListAllocations(ListAllocationsRequest()) == before
        assert testbed.folder("half").stat().st_ino == inode
        joined = testbed.join("half")
        assert joined.welcome is not None
        assert client.welcome is not None
        assert joined.welcome.epoch != client.welcome.epoch
        joined.request()
        joined.granted()
        again.end()


def test_the_epoch_is_dead_after_a_clean_end(testbed: Testbed, manager: Manager, stub: AllocationsStub) -> None:
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    client = testbed.join("half")
    client.request()
    client.granted()
    manager.end()
    assert not client.held
    assert client.epoch == 0


def test_a_damaged_store_is_set_aside_and_its_folders_are_kept(testbed: Testbed) -> None:
    manager = testbed.manager()
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        AllocationsStub(opened).AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    manager.end()
    inode = testbed.folder("half").stat().st_ino
    (testbed.state_dir / "allocations.json").write_text('{"version": 1')
    manager = testbed.manager()
    aside = testbed.state_dir / "allocations.json.damaged-1"
    assert aside.read_text() == '{"version": 1'
    assert str(aside) in manager.log()
    assert not list(ids(testbed.status()))
    # A container may have it mounted: when the allocation is added again, that container is served again.
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        AllocationsStub(opened).AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    assert testbed.folder("half").stat().st_ino == inode


def test_an_allocation_whose_device_is_missing_is_kept_and_shown(testbed: Testbed) -> None:
    testbed.state_dir.mkdir()
    lost = {"id": "lost", "device_ids": ["GPU-gone"], "request_percent": 50, "limit_percent": 100}
    store = testbed.state_dir / "allocations.json"
    store.write_text(json.dumps({"version": 1, "allocations": [lost]}))
    manager = testbed.manager()
    assert "allocation lost is kept, but cannot be served" in manager.log()
    assert list(ids(testbed.status())) == ["lost"]
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        stub = AllocationsStub(opened)
        stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
        assert [each["id"] for each in json.loads(store.read_text())["allocations"]] == ["half", "lost"]
        stub.RemoveAllocation(RemoveAllocationRequest(id="lost"))
    assert [each["id"] for each in json.loads(store.read_text())["allocations"]] == ["half"]


def test_a_device_that_comes_later_is_shared_and_what_was_kept_for_it_is_served(testbed: Testbed) -> None:
    address, root = "0000:03:00.0", testbed.root / "tree"
    root.mkdir()
    testbed.state_dir.mkdir()
    early = {"id": "early", "device_ids": [address], "request_percent": 50, "limit_percent": 100}
    (testbed.state_dir / "allocations.json").write_text(json.dumps({"version": 1, "allocations": [early]}))
    testbed.manager(f"inventory: {{sources: [nvml, edgetpu], root: {root}}}\n")
    assert not testbed.folder("early").exists()
    add_pcie_edgetpu(root, address, number=0)
    testbed.until(lambda status: address in [device.id for device in status.devices])
    assert (testbed.folder("early") / HOOK_SOCKET).is_socket()
    late = Allocation(id="late", device_ids=[address], request_percent=60)
    with channel(testbed, ALLOCATIONS_SOCKET) as opened:
        stub = AllocationsStub(opened)
        with pytest.raises(grpc.RpcError, match="has 50 left"):
            stub.AddAllocation(AddAllocationRequest(allocation=late))
        late.request_percent = 50
        stub.AddAllocation(AddAllocationRequest(allocation=late))
    assert sorted(ids(testbed.status())) == ["early", "late"]


def test_a_store_that_cannot_be_written_refuses_the_allocation(testbed: Testbed, stub: AllocationsStub) -> None:
    (testbed.state_dir / "allocations.json.new").mkdir()
    with pytest.raises(grpc.RpcError) as caught:
        stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "allocations.json cannot be written" in caught.value.details()
    assert not list(ids(testbed.status()))
    assert not testbed.folder("half").exists()


def test_with_a_store_that_cannot_be_written_what_was_kept_is_served_and_stays(
    testbed: Testbed, manager: Manager, stub: AllocationsStub
) -> None:
    stub.AddAllocation(AddAllocationRequest(allocation=half(testbed)))
    (testbed.state_dir / "allocations.json.new").mkdir()
    manager.kill()
    testbed.manager()
    client = testbed.join("half")
    with channel(testbed, ALLOCATIONS_SOCKET) as opened, pytest.raises(grpc.RpcError) as caught:
        AllocationsStub(opened).RemoveAllocation(RemoveAllocationRequest(id="half"))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    client.request()
    client.granted()


def test_where_what_was_kept_has_to_be_written_and_cannot_be_it_is_said_and_served(testbed: Testbed) -> None:
    testbed.state_dir.mkdir()
    early = {"id": "early", "device_ids": testbed.uuids[:1], "request_percent": 50}
    (testbed.state_dir / "allocations.json").write_text(json.dumps({"version": 1, "allocations": [early]}))
    (testbed.state_dir / "allocations.json.new").mkdir()
    manager = testbed.manager()
    testbed.join("early")
    assert "what was read is served" in manager.log()


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
