"""What the page shows of a cluster whose nodes' use is told."""

from edgeshare.contract.units import MIB, NS_PER_MS, NS_PER_S
from edgeshare.shown.service_picture import service_picture, used_on_nodes
from edgeshare.shown.used import Used
from edgeshare.shown.waiting_pods import Waiting
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.cluster_pb2 import ClusterState, NodeState
from edgeshare.v1.status_pb2 import ALLOCATION_STATE_WAITING, AllocationStatus, DeviceStatus, NodeStatus

DEVICE = DeviceStatus(id="0000:01:00.0", accelerator="gpu", model="T4", memory_mib=8192, healthy=False, cause="XID 62")


def node(name: str, percent: float, error: str = "") -> NodeState:
    owner = Owner(namespace="team", pod=f"on-{name}", container="main")
    share = AllocationStatus(
        allocation=Allocation(id="a", device_ids=[DEVICE.id], request_percent=30, memory_mib=1024, owner=owner),
        state=ALLOCATION_STATE_WAITING,
        gpu_percent=percent,
        memory_bytes=[512 * MIB],
        waiting_ns=7 * NS_PER_MS,
    )
    told = NodeStatus(devices=[DEVICE], allocations=[share])
    return NodeState(node=name, status=told, told_at_ns=NS_PER_S, error=error)


def used(*nodes: NodeState, **more: int) -> Used:
    pod = Waiting(namespace="team", pod="new", asks={"edge/gpu-percent": 60}, why="no room")
    return Used(ClusterState(nodes=nodes, **more), [pod], "", "")


def test_each_nodes_use_memory_health_and_who_waits_there_are_shown() -> None:
    picture = service_picture(used(node("n1", 20.5)))
    (only,) = picture["nodes"]
    (device,) = only["devices"]
    (share,) = device["shares"]
    assert (only["name"], only["stale"], device["cause"]) == ("n1", "", "XID 62")
    assert (share["asked_percent"], share["used_percent"], share["waits"]) == (30, 20.5, True)
    assert (share["memory_used_mib"], share["memory_mib"]) == (512, 1024)
    first, second = picture["waiting"]
    assert (first["who"], first["what"], "7.0 ms now" in first["why"]) == ("team/on-n1/main", "n1: GPU 0", True)
    assert (second["who"], second["why"]) == ("team/new", "no room")


def test_devices_of_one_id_on_two_nodes_have_a_line_each_that_the_picture_names() -> None:
    told = used(node("n1", 20), node("n2", 70))
    shown = {each["name"]: each["devices"][0]["id"] for each in service_picture(told)["nodes"]}
    assert shown["n1"] != shown["n2"]
    assert used_on_nodes(told) == {(shown["n1"], "a"): 20, (shown["n2"], "a"): 70}


def test_a_node_that_is_not_of_now_is_stale_since_then_waits_for_nothing_and_has_a_gap_in_its_line() -> None:
    told = used(node("n1", 20, "it does not answer"), NodeState(node="n2", error="never did"))
    first, second = service_picture(told)["nodes"]
    assert first["stale"].startswith("stale since 19")
    assert first["stale"].endswith(": it does not answer")
    assert len(first["devices"]) == 1
    assert (second["stale"], second["devices"]) == ("did not tell yet: never did", [])
    assert [each["who"] for each in service_picture(told)["waiting"]] == ["team/new"]
    assert used_on_nodes(told) == {}


def test_an_api_server_that_is_away_is_said() -> None:
    assert service_picture(used(node("n1", 20)))["notice"] == ""
    assert "nodes may be missing" in service_picture(used(node("n1", 20), stale_since_ns=NS_PER_S))["notice"]
    unknown = Used(ClusterState(), [], "nobody is there", "team")
    assert "which pods wait is not known: nobody is there" in service_picture(unknown)["notice"]
    assert service_picture(unknown)["nobody"] == "nobody has a share in namespace team"
