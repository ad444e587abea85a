"""What the API server tells of nodes and of their managers' addresses, taken in; and what is no such thing."""

from typing import Any

import pytest

from edgeshare.contract.errors import InvalidRequest
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import AllocationStatus, DeviceStatus, NodeStatus, UnmanagedProcess
from sharemgr.cluster.config import ObjectName
from sharemgr.cluster.status.directory import Directory, parse_endpoints, parse_placed
from sharemgr.cluster.status.query import Query, view

Json = dict[str, Any]


def endpoint(node: str, address: str, ready: bool | None = True) -> Json:
    return {"addresses": [address], "nodeName": node, "conditions": {"ready": ready}}


def endpoints(*of: Json, name: str = "m-1", service: str = "managers", port: int | None = 9468) -> Json:
    labels = {"kubernetes.io/service-name": service}
    return {"metadata": {"name": name, "labels": labels}, "endpoints": list(of), "ports": [{"port": port}]}


def accelerator_node(name: str, *pods: tuple[str, str]) -> Json:
    made = {"id": "a", "devices": ["g"], "unitsEach": 10, "memoryMiB": 0}
    allocations = [{**made, "pod": {"namespace": namespace, "name": pod}} for namespace, pod in pods]
    return {"metadata": {"name": name}, "status": {"allocations": allocations}}


def directory(*slices: Json) -> Directory:
    found = Directory(ObjectName(namespace="edgeshare", name="managers"))
    found.endpoints_listed(map(parse_endpoints, slices))
    return found


def test_a_manager_is_where_the_endpoints_of_its_service_say_and_those_that_are_ready_come_first() -> None:
    found = directory(
        endpoints(endpoint("n1", "10.0.0.1", ready=False), endpoint("n1", "10.0.0.2"), endpoint("n2", "fd00::1")),
        endpoints(endpoint("n3", "10.0.0.3"), name="m-2"),
        endpoints(endpoint("n4", "10.0.0.4"), name="x", service="other"),
    )
    assert found.addresses("n1") == ("10.0.0.2:9468", "10.0.0.1:9468")
    assert found.addresses("n2") == ("[fd00::1]:9468",)
    assert found.addresses("n3") == ("10.0.0.3:9468",)
    assert found.addresses("n4") == found.addresses("n5") == ()


def test_what_a_watch_tells_takes_the_place_of_what_was() -> None:
    found = directory(endpoints(endpoint("n1", "10.0.0.1")))
    found.endpoints_told("MODIFIED", parse_endpoints(endpoints(endpoint("n1", "10.0.0.9"))))
    assert found.addresses("n1") == ("10.0.0.9:9468",)
    found.endpoints_told("DELETED", parse_endpoints(endpoints(endpoint("n1", "10.0.0.9"))))
    assert found.addresses("n1") == ()


@pytest.mark.parametrize(
    "nonsense",
    [
        "text",
        {"metadata": {}},
        endpoints({"addresses": [], "nodeName": "n1"}),
        endpoints(endpoint("n1", "unix:/run/edgeshare/allocations.sock")),
        endpoints(endpoint("n1", "example.com")),
        endpoints(endpoint("n" * 254, "10.0.0.1")),
    ],
)
def test_what_is_no_slice_of_addresses_is_refused(nonsense: object) -> None:
    with pytest.raises(InvalidRequest, match="expected an EndpointSlice: "):
        parse_endpoints(nonsense)


@pytest.mark.parametrize(
    "no_address", [endpoints(endpoint("n1", "10.0.0.1"), port=None), endpoints(endpoint("", "10.0.0.1"))]
)
def test_an_endpoint_without_a_port_or_a_node_is_nobodys(no_address: Json) -> None:
    assert parse_endpoints(no_address).managers == ()


def test_a_query_concerns_the_nodes_on_which_its_pods_have_allocations() -> None:
    found = directory()
    assert not found.known.is_set()
    found.nodes_listed(map(parse_placed, (accelerator_node("n2", ("a", "x"), ("b", "y")), accelerator_node("n1"))))
    assert found.known.is_set()
    assert found.nodes(Query()) == ["n1", "n2"]
    assert found.nodes(Query("a")) == found.nodes(Query("b", "y")) == ["n2"]
    assert found.nodes(Query("a", "y")) == found.nodes(Query("c")) == []
    found.node_told("ADDED", parse_placed(accelerator_node("n3", ("c", "z"))))
    assert found.nodes(Query("c", "z")) == ["n3"]
    found.node_told("DELETED", parse_placed(accelerator_node("n3")))
    assert found.nodes(Query()) == ["n1", "n2"]


def test_a_node_that_tells_nonsense_is_there_and_nobodys() -> None:
    assert parse_placed({"metadata": {"name": "n1"}, "status": {"allocations": 5}}).pods == frozenset()
    with pytest.raises(InvalidRequest, match=r"expected an AcceleratorNode with metadata\.name"):
        parse_placed({"status": {}})


def test_who_may_see_a_namespace_sees_nothing_of_another() -> None:
    def allocation(name: str, namespace: str, pod: str, device: str) -> AllocationStatus:
        owner = Owner(namespace=namespace, pod=pod)
        return AllocationStatus(
            allocation=Allocation(id=name, device_ids=[device], owner=owner),
            waiting_allocations=["a1", "b1"],
            gpu_percent=3,
        )

    stranger = UnmanagedProcess(pid=7, pod_uid="secret")
    devices = [
        DeviceStatus(id=name, healthy=True, allocated_percent=90, memory_used_mib=5, unmanaged_processes=[stranger])
        for name in ("g0", "g1")
    ]
    own = allocation("a1", "a", "web", "g0")
    whole = NodeStatus(version="1", devices=devices, allocations=[own, allocation("b1", "b", "batch", "g1")])
    assert view(whole, Query()) == whole
    seen = view(whole, Query("a"))
    assert [each.allocation.id for each in seen.allocations] == ["a1"]
    assert (seen.allocations[0].gpu_percent, list(seen.allocations[0].waiting_allocations)) == (3, ["a1"])
    assert list(seen.devices) == [DeviceStatus(id="g0", healthy=True)]
    assert list(view(whole, Query("a", "other")).allocations) == []
    # What is kept of the node is not changed by who looks.
    assert list(own.waiting_allocations) == ["a1", "b1"]
