"""AcceleratorNodes from their JSON: whatever one says, it is read, or told as that node's fault in one line."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import InvalidRequest
from edgeshare.kube.objects.accelerator_node import ALLOCATIONS_MAX, DEVICES_MAX
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.books import AcceleratorNode, Books, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Take


def device(name: str, **others: object) -> dict[str, Any]:
    return {"id": name, "kind": "gpu", "model": "Tesla T4", "memoryMiB": 15_000, "healthy": True, **others}


def allocation(name: str, *devices: str, **others: object) -> dict[str, Any]:
    of_pod = {"namespace": "d", "name": "p", "uid": "u"}
    return {"id": name, "devices": list(devices), "unitsEach": 40, "memoryMiB": 9, "pod": of_pod, **others}


def node_json(devices: object = (), allocations: object = ()) -> dict[str, Any]:
    told = [list(each) if isinstance(each, tuple) else each for each in (devices, allocations)]
    return {"metadata": {"name": "n"}, "status": {"devices": told[0], "allocations": told[1]}}


def test_a_node_has_the_gpus_and_the_allocations_that_it_tells_of() -> None:
    told = node_json(
        (device("g"), device("h", healthy=False)), (allocation("a", "g", "h"), allocation("b", "g", pod={}))
    )
    assert parse_node(told) == AcceleratorNode(
        Inventory("n", (Device("g", "Tesla-T4", 15_000), Device("h", "Tesla-T4", 15_000, healthy=False))),
        (Listed("a", "u", (Take("g", 40, 9), Take("h", 40, 9))), Listed("b", "", (Take("g", 40, 9),))),
    )


def test_devices_and_allocations_are_each_of_their_kind() -> None:
    devices = device("g"), device("t", kind="edgetpu", memoryMiB=0), device("n", kind="of-later")
    allocations = allocation("a", "t"), allocation("b", "g"), allocation("c", "n"), allocation("tpu-d", "gone")
    node = parse_node(node_json(devices, allocations))
    gpu, tpu = Accelerator.GPU, Accelerator.EDGETPU
    assert [(each.id, each.kind) for each in node.inventory.devices] == [("g", gpu), ("t", tpu)]
    # One whose device is gone is of the kind that its name tells.
    assert [(each.id, [take.kind for take in each.takes]) for each in node.allocations] == [
        ("a", [tpu]),
        ("b", [gpu]),
        ("tpu-d", [tpu]),
    ]


def test_a_node_that_has_told_nothing_yet_has_no_gpus_and_no_fault() -> None:
    for told in ({"metadata": {"name": "n"}}, {"metadata": {"name": "n"}, "status": {}}, node_json()):
        assert parse_node(told) == AcceleratorNode(Inventory("n", ()))


def test_fields_that_later_versions_add_are_let_through() -> None:
    told = node_json((device("g", source="nvml", new=[]),), (allocation("a", "g", later={}),))
    told |= {"new": 1, "apiVersion": "share.edge/v1alpha1"}
    assert len(parse_node(told).inventory.devices) == 1


@pytest.mark.parametrize(
    "told",
    [
        node_json(None),
        node_json("gpu"),
        node_json((), {}),
        node_json((5,)),
        node_json(({"id": "g"},)),
        node_json((device("g", memoryMiB=-1),)),
        node_json((device("g", memoryMiB=1 << 25),)),
        node_json((device("g", memoryMiB="9"),)),
        node_json((device("g", memoryMiB=0.5),)),
        node_json((device("g", healthy=1),)),
        node_json((device("g", model=None),)),
        node_json((device(""),)),
        node_json((device("a::b"),)),
        node_json((device("50%\n"),)),
        node_json((device("g" * 10_000),)),
        node_json((device("g"), device("g"))),
        node_json((device("g"), device("g", kind="edgetpu"))),
        node_json(tuple(device(f"g{number}") for number in range(DEVICES_MAX + 1))),
        node_json((device("g"),), (allocation("a"),)),
        node_json((device("g"),), (allocation("a", *map(str, range(17))),)),
        node_json((device("g"),), (allocation("a", "g", unitsEach=0),)),
        node_json((device("g"),), (allocation("a", "g", unitsEach=101),)),
        node_json((device("g"),), (allocation("a", "g", unitsEach=True),)),
        node_json((device("g"),), (allocation("a", "g", memoryMiB=-1),)),
        node_json((device("g"),), (allocation("a", "g", pod="p"),)),
        node_json((device("g"),), (allocation("a", "g", pod={"uid": 5}),)),
        node_json((device("g"),), tuple(allocation("a", "g") for _ in range(ALLOCATIONS_MAX + 1))),
        {"metadata": {"name": "n"}, "status": None},
    ],
)
def test_a_node_that_tells_nonsense_has_no_gpus_and_a_fault_that_names_it(told: dict[str, Any]) -> None:
    node = parse_node(told)
    assert node.inventory == Inventory("n", ())
    assert node.allocations == ()
    assert node.fault.startswith("AcceleratorNode n: ")
    assert node.fault.isprintable()
    assert len(node.fault) < 300


@pytest.mark.parametrize(
    "thing", [None, [], "n", 5, {}, {"metadata": None}, {"metadata": {}}, {"metadata": {"name": ""}}]
)
def test_what_has_no_name_is_an_invalid_request_in_one_line(thing: object) -> None:
    with pytest.raises(InvalidRequest, match=r"expected an AcceleratorNode with metadata\.name: ") as caught:
        parse_node(thing)
    assert str(caught.value).isprintable()


def test_a_model_is_spelled_as_labels_are() -> None:
    odd = node_json((device("g", model="NVIDIA A100-SXM4 (80GB) 50%"), device("h", model="")))
    assert [gpu.model for gpu in parse_node(odd).inventory.devices] == ["NVIDIA-A100-SXM4-80GB-50", ""]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["g", 40, 100])
KEYS = st.text(max_size=3) | st.sampled_from(
    ["name", "devices", "allocations", "id", "pod", "uid", "unitsEach", "kind"]
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=10
)


def at_status(thing: Any) -> object:
    return {"metadata": {"name": "n"}, "status": thing}


def at_device(thing: Any) -> object:
    return node_json((thing,))


def at_allocation(thing: Any) -> object:
    return node_json((device("g"),), (thing,))


@given(st.sampled_from((at_status, at_device, at_allocation)), JSON)
def test_whatever_a_node_says_is_read_or_told_and_taken_in(place: Callable[[Any], object], thing: Any) -> None:
    node = parse_node(place(thing))
    assert node.fault.isprintable()
    books = Books()
    books.node_told(node)
    assert set(books.faults) == ({"n"} if node.fault else set())


@given(st.sampled_from(["id", "kind", "model", "memoryMiB", "healthy"]), JSON)
def test_whatever_stands_in_a_device_is_read_or_told(key: str, thing: object) -> None:
    node = parse_node(node_json((device("g") | {key: thing},)))
    assert node.fault.isprintable()
    assert not (node.fault and node.inventory.devices)


BOTH = (device("g"), device("h"))


@pytest.mark.parametrize(
    ("then", "held"),
    [
        ((BOTH, (allocation("a", "g"),)), {"g": (40, 9)}),
        ((BOTH, (allocation("a", "g", unitsEach=30),)), {"g": (30, 9)}),
        ((BOTH, (allocation("a", "g", memoryMiB=8),)), {"g": (40, 8)}),
        ((BOTH, (allocation("a", "h"),)), {"h": (40, 9)}),
        ((BOTH, (allocation("a", "g", "h"),)), {"g": (40, 9), "h": (40, 9)}),
        ((BOTH, (allocation("a", "g"), allocation("b", "g"))), {"g": (80, 18)}),
        ((BOTH, (allocation("a", "g"), allocation("b", "h"))), {"g": (40, 9), "h": (40, 9)}),
        ((BOTH, (allocation("a", "g"), allocation("b", "g", pod={"uid": "v"}))), {"g": (80, 18)}),
        ((BOTH, (allocation("a", "g"), allocation("b", "g", pod={}))), {"g": (80, 18)}),
        ((BOTH, ()), {}),
        (((device("g", kind="edgetpu"), device("h")), (allocation("a", "g"),)), {"g": (40, 9)}),
        ((BOTH, (allocation("a", "g"), allocation("b", "g", unitsEach=0))), {}),
        ((BOTH, {}), {}),
    ],
)
def test_what_a_node_tells_next_is_taken_in_whatever_is_known(then: tuple[Any, Any], held: dict[str, Any]) -> None:
    knowing, plain = Books(), Books()
    for books in (knowing, plain):
        books.node_told(parse_node(node_json(BOTH, (allocation("a", "g"),))))
    knowing.node_told(parse_node(node_json(*then), knowing.ledger.node))
    plain.node_told(parse_node(node_json(*then)))
    assert knowing.faults == plain.faults
    found = [{name: (use.units, use.memory_mib) for name, use in node.use.items()} for node in knowing.ledger]
    assert found == ([] if knowing.faults else [held])
    assert [(node.inventory, node.listed) for node in knowing.ledger] == [
        (node.inventory, node.listed) for node in plain.ledger
    ]


def test_what_a_node_lists_as_before_is_not_parsed_again() -> None:
    books = Books()
    first, second = allocation("a", "g"), allocation("b", "h", pod={"uid": "v"})
    books.node_told(parse_node(node_json((device("g"), device("h")), (first,))))
    node = books.ledger.node("n")
    assert node is not None
    before = node.listed["u"]
    told = parse_node(node_json((device("g"), device("h")), (first, second)), books.ledger.node)
    assert told.kept == {"u": before}
    assert [each.pod_uid for each in told.allocations] == ["v"]
    books.node_told(told)
    assert node.listed["u"] is before
    assert set(node.listed) == {"u", "v"}
