"""What outlives the manager: allocations and their folders; and what it says where they cannot be kept or read."""

import json

import grpc
import pytest

from edgeshare.contract.names import ALLOCATIONS_SOCKET, HOOK_SOCKET
from edgeshare.v1.allocations_pb2 import (
    AddAllocationRequest,
    Allocation,
    ListAllocationsRequest,
    Owner,
    RemoveAllocationRequest,
)
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from simgpu.trees import add_pcie_edgetpu
from tests.kit.manager.allocations import channel, half
from tests.kit.manager.testbed import Manager, Testbed, ids


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
