"""What the page shows of a cluster, by what its API server knows."""

from edgeshare.cli.page.cluster_picture import cluster_picture
from edgeshare.cli.status.cluster import Cluster, Device, Node, Taken
from edgeshare.shown.waiting_pods import Waiting


def test_each_node_is_told_with_its_devices_and_who_has_them() -> None:
    taken = [
        Taken(namespace="team", pod="web-0", container="main", percent=30, memory_mib=4000),
        Taken(percent=10, memory_mib=1),
    ]
    known = Device(id="GPU-1", kind="gpu", model="Tesla T4", memory_mib=16_000, healthy=True, taken=taken)
    ill = Device(id="GPU-2", healthy=False, why="XID 62")
    seen = Cluster(nodes=[Node(name="n1", devices=[known, ill]), Node(name="n2", fault="nonsense")], waiting=[])
    first, second = cluster_picture(seen)["nodes"]
    assert (first["name"], second["name"], second["fault"]) == ("n1", "n2", "nonsense")
    assert [(each["model"], each["cause"]) for each in first["devices"]] == [("gpu Tesla T4", ""), ("", "XID 62")]
    shares = first["devices"][0]["shares"]
    assert [(each["owner"], each["asked_percent"], each["memory_mib"]) for each in shares] == [
        ("team/web-0/main", 30, 4000),
        ("nobody is known yet", 10, 1),
    ]
    assert {(each["used_percent"], each["memory_used_mib"], each["guarantee"]) for each in shares} == {(None, None, "")}


def test_two_of_one_name_are_two() -> None:
    """As a pod that is there anew while the one before is not forgotten."""
    twice = [Taken(namespace="team", pod="web-0", container="main", percent=60, memory_mib=0)] * 2
    seen = Cluster(nodes=[Node(name="n1", devices=[Device(id="GPU-1", healthy=True, taken=twice)])], waiting=[])
    (device,) = cluster_picture(seen)["nodes"][0]["devices"]
    assert len({each["id"] for each in device["shares"]}) == 2
    assert device["warning"] == "120 % are given out of 100"


def test_who_waits_is_told_with_what_he_asks_for_and_why() -> None:
    pods = [
        Waiting(namespace="team", pod=name, asks={"edge/gpu-percent": 60}, why=why)
        for name, why in (("a", "no room"), ("b", ""))
    ]
    assert cluster_picture(Cluster(nodes=[], waiting=pods))["waiting"] == [
        {"who": "team/a", "what": "60 edge/gpu-percent", "why": "no room"},
        {"who": "team/b", "what": "60 edge/gpu-percent", "why": "its scheduler did not say yet"},
    ]


def test_a_cluster_with_no_node_says_what_to_look_at() -> None:
    assert "is the device plugin installed" in cluster_picture(Cluster(nodes=[], waiting=[]))["nobody"]
