"""What a pod has of several kinds of device by its assignment, whatever that says."""

import json
from typing import Any

import pytest

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import NotFound, Unavailable
from sharemgr.cluster.state.books import AcceleratorNode, Books, Listed
from sharemgr.cluster.state.holdings import HELD_MAX, Held, assigned_to
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Ask, Holding, Take

GPU, TPU = "edge/gpu-percent", "edge/tpu-percent"
KIND = Accelerator.EDGETPU
G, T, U = Device("g", "T4", 1000), Device("t", "Coral", 0, kind=KIND), Device("u", "Coral", 0, kind=KIND)
BOTH = {"main": {GPU: ["g"], TPU: ["t"]}}


def pod(assignment: object, gpu: str = "40", tpu: str = "60", on: str = "n", **others: Any) -> SharePod:
    """One of a container main."""
    limits = {GPU: gpu, TPU: tpu}
    noted = assignment if isinstance(assignment, str) else json.dumps(assignment)
    metadata = {"uid": "u1", "namespace": "d", "name": "p"}
    if assignment is not None:
        metadata |= {"annotations": {"edge/gpu-assignment": noted}}
    container = {"name": "main", "resources": {"limits": {key: size for key, size in limits.items() if size}}}
    return parse_pod({"metadata": metadata, "spec": {"nodeName": on, "containers": [container], **others}})


def books_of(*allocations: Listed, devices: tuple[Device, ...] = (G, T, U)) -> Books:
    books = Books()
    books.node_told(AcceleratorNode(Inventory("n", devices), allocations))
    return books


def held(books: Books) -> dict[str, int]:
    """Units of each device."""
    there = books.ledger.node("n")
    assert there is not None
    return {device: use.units for device, use in there.use.items()}


def test_it_has_what_is_assigned_of_each_kind() -> None:
    books = books_of()
    books.pod_seen(pod(BOTH))
    assert (held(books), books.flagged) == ({"g": 40, "t": 60}, {})
    books.pod_gone("u1")
    assert held(books) == {}


def test_what_is_chosen_is_written_by_kind_and_read_as_it_was() -> None:
    asking = pod(None, on="")
    assert asking.request.asks == (Ask(1, 40), Ask(1, 60, kind=KIND))
    text = assigned_to(asking, Holding("u1", "n", (Take("g", 40, 400), Take("u", 60, 0, KIND))))
    assert json.loads(text) == {"main": {GPU: ["g"], TPU: ["u"]}}
    books = books_of()
    assert set(books.holding(pod(text)).takes) == {Take("g", 40, 400), Take("u", 60, 0, KIND)}


def test_what_was_chosen_for_one_device_is_what_it_has_and_else_what_is_written_is_read() -> None:
    """Also where two containers of a pod have parts of one device: it has them together."""
    one = pod(None, tpu="", on="")
    chosen = Holding("u1", "n", (Take("g", 40, 400),))
    placed = one._replace(node="n", assignment=assigned_to(one, chosen))
    assert Held().of(placed, {"g": G}, chosen) is chosen
    assert Held().of(placed, {"g": G}) == chosen
    beside = {"name": "beside", "resources": {"limits": {GPU: "20"}}}
    main = {"name": "main", "resources": {"limits": {GPU: "40"}}}
    two = pod(None, on="", containers=[main, beside])
    both = Holding("u1", "n", (Take("g", 40, 400), Take("g", 20, 200)))
    placed = two._replace(node="n", assignment=assigned_to(two, both))
    assert Held().of(placed, {"g": G}, both).takes == (Take("g", 60, 600),)


def test_an_init_container_hands_its_edgetpu_on() -> None:
    init = [{"name": "fetch", "resources": {"limits": {TPU: "80"}}}]
    asking = pod({"fetch": {TPU: ["t"]}, "main": {TPU: ["t"]}}, gpu="", initContainers=init)
    assert asking.request.asks == (Ask(1, 80, kind=KIND),)
    books = books_of()
    books.pod_seen(asking)
    assert held(books) == {"t": 80}


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        (None, "is bound to node n without annotation edge/gpu-assignment"),
        ({"main": {GPU: ["g"], TPU: ["t", "u"]}}, "names 2 EdgeTPUs for container main, whose 60 units are of 1"),
        ({"main": {GPU: ["g"], TPU: []}}, "has no list of 1 to 16 devices for container main"),
        ({"main": {GPU: ["g"], TPU: ["g"]}}, "names a device as one of several kinds"),
        ({"main": {GPU: ["t"], TPU: ["g"]}}, "its assignment has g as EdgeTPU, which is GPU of node n"),
        ({"main": {GPU: ["g"]}, "other": {TPU: ["t"]}}, "names no EdgeTPU for container main"),
        ('{"main":{"edge/gpu-percent":["g"],"edge/tpu-percent":["t"}}', "is no JSON"),
    ],
)
def test_a_wrong_assignment_is_flagged_and_what_its_node_lists_counts(assignment: object, said: str) -> None:
    books = books_of(Listed("tpu-a", "u1", (Take("u", 60, 0, KIND),)))
    books.pod_seen(pod(assignment))
    assert said in books.flagged["u1"]
    assert held(books) == {"u": 60}


def test_another_edgetpu_than_the_assigned_one_is_what_it_has() -> None:
    books = books_of(Listed("gpu-a", "u1", (Take("g", 40, 400),)), Listed("tpu-a", "u1", (Take("u", 60, 0, KIND),)))
    books.pod_seen(pod(BOTH))
    assert books.flagged["u1"] == "d/p: its assignment is of g, t, but it has a part of u"
    assert held(books) == {"g": 40, "u": 60}


def test_an_edgetpu_that_is_not_there_keeps_its_units_and_is_said() -> None:
    books = books_of(devices=(G, U))
    books.pod_seen(pod(BOTH))
    assert books.flagged["u1"] == "d/p: its node n has no EdgeTPU t (any more)"
    books.node_told(AcceleratorNode(Inventory("n", (G, T, U))))
    assert (held(books), books.flagged) == ({"g": 40, "t": 60}, {})


def test_an_assignment_that_names_no_edgetpu_leaves_that_to_the_node() -> None:
    books = books_of()
    books.pod_seen(pod({"main": ["g"]}))
    assert books.flagged["u1"] == "d/p: its assignment names no EdgeTPU"
    assert held(books) == {"g": 40}
    listed = Listed("gpu-a", "u1", (Take("g", 40, 400),)), Listed("tpu-a", "u1", (Take("u", 60, 0, KIND),))
    books.node_told(AcceleratorNode(Inventory("n", (G, T, U)), listed))
    assert held(books) == {"g": 40, "u": 60}


def test_an_edgetpu_of_which_too_much_is_held_is_said_with_who_does() -> None:
    books = books_of()
    books.pod_seen(pod(BOTH))
    books.pod_seen(pod(BOTH, gpu="30", tpu="50")._replace(uid="u2", name="q"))
    assert books.overcommitted() == ["node n: pods d/p, d/q hold more of EdgeTPU t than there is of it"]


def test_nothing_is_reserved_of_an_edgetpu_that_is_another_kind_of_device_or_ill() -> None:
    ill = Device("t", "Coral", 0, healthy=False, kind=KIND)
    books = books_of(devices=(G, ill))
    for device, error, said in (("g", NotFound, "EdgeTPU g is not on node n"), ("t", Unavailable, "EdgeTPU t of node")):
        with pytest.raises(error, match=said):
            books.ledger.assume(Holding("u1", "n", (Take(device, 10, 0, KIND),)))
    assert held(books) == {}


def test_what_a_pod_has_is_worked_out_again_where_it_or_its_nodes_devices_are_others() -> None:
    once, devices = Held(), {"g": Device("g", "T4", 1000), "h": Device("h", "T4", 1000)}
    on_g = pod({"main": ["g"]}, "20", "")
    first = once.of(on_g, devices)
    assert first.takes == (Take("g", 20, 200),)
    assert once.of(on_g, devices) is first
    assert once.of(on_g, {"g": Device("g", "T4", 2000)}).takes == (Take("g", 20, 400),)
    on_h = on_g._replace(assignment='{"main":["h"]}')
    assert [once.of(each, devices).takes[0].device_id for each in (on_g, on_h, on_g)] == ["g", "h", "g"]


def test_no_more_pods_are_remembered_than_are_looked_at_again() -> None:
    once, devices = Held(), {"g": Device("g", "T4", 1000)}
    pods = [pod({"main": ["g"]}, "20", "")._replace(uid=str(number)) for number in range(HELD_MAX + 1)]
    first = once.of(pods[0], devices)
    for each in pods[1:]:
        once.of(each, devices)
    assert once.of(pods[-1], devices) is once.of(pods[-1], devices)
    assert once.of(pods[0], devices) is not first
