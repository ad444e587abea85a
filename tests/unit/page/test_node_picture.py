"""What the page shows of a node, by what its manager tells."""

from typing import Any

import pytest

from edgeshare.contract.units import MIB, NS_PER_MS
from edgeshare.shown.node_picture import node_picture, used_of
from edgeshare.shown.picture import TEXT_MAX, Device, Share
from edgeshare.v1.allocations_pb2 import Allocation, Owner
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_WAITING,
    AllocationStatus,
    DeviceStatus,
    NodeStatus,
    UnmanagedProcess,
)

HOSTILE = '<img src=x onerror="alert(1)">\n\u202eevil\x1b[2J' + "x" * 1000


def device(**more: Any) -> DeviceStatus:
    usual = {"id": "GPU-0", "accelerator": "gpu", "model": "Tesla T4", "memory_mib": 8192, "healthy": True}
    return DeviceStatus(**{**usual, **more})


def share(name: str, *devices: str, **more: Any) -> AllocationStatus:
    asked = {"request_percent": 30, "limit_percent": 60, "memory_mib": 1024}
    owner = Owner(namespace="team", pod=name, container="main")
    allocation = Allocation(id=name, device_ids=devices or ["GPU-0"], owner=owner, **asked)
    return AllocationStatus(allocation=allocation, **more)


def shown(*shares: AllocationStatus, **more: Any) -> Device:
    (node,) = node_picture(NodeStatus(devices=[device(**more)], allocations=shares))["nodes"]
    (only,) = node["devices"]
    return only


def only(each: AllocationStatus, **more: Any) -> Share:
    (found,) = shown(each, **more)["shares"]
    return found


def test_who_has_it_is_told_with_what_was_asked_and_used() -> None:
    has = only(share("a", gpu_percent=29.46, memory_bytes=[512 * MIB], state=ALLOCATION_STATE_HOLDING))
    assert (has["owner"], has["asked_percent"], has["limit_percent"]) == ("team/a/main", 30, 60)
    assert (has["used_percent"], has["memory_mib"], has["memory_used_mib"]) == (29.5, 1024, 512)
    assert (has["state"], has["waits"]) == ("holding", False)


@pytest.mark.parametrize(
    ("due", "got", "verdict"), [(30, 30, "met"), (30, 29, "met"), (30, 20, "missed"), (0, 0, "met")]
)
def test_a_guarantee_is_missed_by_the_rule_that_alerts_go_by(due: float, got: float, verdict: str) -> None:
    assert only(share("a", wanted_percent=due, due_percent=due, gpu_percent=got))["guarantee"] == verdict


@pytest.mark.parametrize(
    ("kind", "beside", "count", "mode"),
    [
        ("gpu", True, 2, "several at once"),
        ("gpu", False, 2, "in turns"),
        ("gpu", True, 1, ""),
        ("edgetpu", False, 2, "one at a time, until it closes it"),
    ],
)
def test_how_they_come_together_is_told_where_there_are_two(kind: str, beside: bool, count: int, mode: str) -> None:
    assert shown(*(share(name, beside=beside) for name in "ab"[:count]), accelerator=kind)["mode"] == mode


def test_of_several_devices_each_shows_its_own_memory() -> None:
    both = share("a", "GPU-0", "GPU-1", memory_bytes=[1 * MIB, 2 * MIB])
    status = NodeStatus(devices=[device(), device(id="GPU-1", index=1)], allocations=[both])
    (node,) = node_picture(status)["nodes"]
    assert [each["shares"][0]["memory_used_mib"] for each in node["devices"]] == [1, 2]


def test_health_comes_with_its_reason_and_heat_where_it_is_known() -> None:
    ill = shown(healthy=False, cause="XID 62", temperature_c=91)
    assert (ill["cause"], ill["temperature_c"]) == ("XID 62", 91)
    assert (shown()["cause"], shown()["temperature_c"]) == ("", None)
    assert shown(healthy=False)["cause"] == "not healthy"


def test_who_goes_past_the_hook_is_warned_of() -> None:
    assert shown(unmanaged_processes=[UnmanagedProcess(pid=7)])["warning"] == "used past the hook: pid 7"


def test_who_waits_is_listed_with_why() -> None:
    waits = {"state": ALLOCATION_STATE_WAITING, "waiting_ns": NS_PER_MS, "longest_wait_ns": 2 * NS_PER_MS}
    told = NodeStatus(
        devices=[device()], allocations=[share("a", **waits), share("b"), share("c", throttled=True, **waits)]
    )
    assert node_picture(told)["waiting"] == [
        {"who": "team/a/main", "what": "GPU 0", "why": "for 1.0 ms now, 2.0 ms at most: others have it"},
        {"who": "team/c/main", "what": "GPU 0", "why": "for 1.0 ms now, 2.0 ms at most: it is at its limit"},
    ]


def texts(thing: object) -> list[str]:
    """All text in it."""
    if isinstance(thing, str):
        return [thing]
    if isinstance(thing, dict):
        return [text for each in thing.values() for text in texts(each)]
    return [text for each in thing for text in texts(each)] if isinstance(thing, list | tuple) else []


@pytest.mark.parametrize("name", [HOSTILE, "onerror" + "x" * 1000], ids=["hostile", "long"])
def test_names_of_others_come_in_one_line_of_bounded_length(name: str) -> None:
    owner = Owner(namespace=name, pod=name, container=name)
    allocation = Allocation(id=name, device_ids=[name], request_percent=1, owner=owner)
    waits = AllocationStatus(
        allocation=allocation, state=ALLOCATION_STATE_WAITING, waiting_allocations=[name, "unknown"]
    )
    bad = device(id=name, model=name, accelerator=name, healthy=False, cause=name)
    status = NodeStatus(devices=[bad], allocations=[waits])
    found = texts(node_picture(status))
    assert sum("onerror" in text for text in found) >= 6
    assert all(text.isprintable() and len(text) < TEXT_MAX + 100 for text in found)
    ((device_id, allocation_id),) = used_of(status)
    (node,) = node_picture(status)["nodes"]
    # Its line is found by what it is called on the page.
    assert (device_id, allocation_id) == (node["devices"][0]["id"], node["devices"][0]["shares"][0]["id"])


def test_an_allocation_of_a_device_that_is_not_told_of_is_no_fault() -> None:
    status = NodeStatus(devices=[device()], allocations=[share("a", "gone")])
    (node,) = node_picture(status)["nodes"]
    assert node["devices"][0]["shares"] == []
