"""What is passed over of an object is nothing that matters: read in part it is parsed as it is when read whole."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import (
    GPU_AFFINITY,
    GPU_ASSIGNMENT,
    GPU_EXCLUSION,
    GPU_MEMORY_MIB,
    GPU_MODEL,
    GPU_PERCENT,
    SHARE_CLASS,
    TPU_PERCENT,
)
from edgeshare.kube.json_parts import reader_of
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.cores import parse_offer
from sharemgr.cluster.state.object_fields import AcceleratorNodeFields, NodeFields, PodFields
from sharemgr.cluster.state.pods import parse_pod

CORES = {"cpu": "1500m", "memory": "2Gi"}


def container(name: str, percent: str, **more: object) -> dict[str, Any]:
    limits = {GPU_PERCENT: percent, GPU_MEMORY_MIB: "512", TPU_PERCENT: "40", "cpu": "3"}
    return {"name": name, "image": "i", "resources": {"limits": limits, "requests": {**CORES, "other": "1"}}, **more}


POD = {
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [{"fieldsV1": {"f:spec": {}}}],
        "annotations": {GPU_ASSIGNMENT: '{"c":["GPU-1"]}', GPU_MODEL: "A10,T4", SHARE_CLASS: "latency", "other": "x"},
        "labels": {GPU_AFFINITY: "a", GPU_EXCLUSION: "e", "other": "x"},
    },
    "spec": {
        "nodeName": "node",
        "priority": 5,
        "volumes": [{"name": "v"}],
        "initContainers": [container("i", "20"), container("s", "10", restartPolicy="Always")],
        "containers": [container("c", "30"), {"name": "d", "resources": {}}],
        "resources": {"requests": {"cpu": "9", "hugepages-2Mi": "1"}},
        "overhead": {"memory": "16Mi"},
    },
    "status": {"phase": "Running", "nominatedNodeName": "m", "conditions": [{}]},
}
DEVICE = {"id": "GPU-1", "kind": "gpu", "model": "A10", "memoryMiB": 24_000, "healthy": True, "index": 0}
ALLOCATION = {"id": "a", "devices": ["GPU-1"], "unitsEach": 5, "memoryMiB": 7, "pod": {"uid": "u", "name": "p"}}
ACCELERATORS = {
    "metadata": {"name": "node", "resourceVersion": "7", "labels": {}},
    "status": {"devices": [DEVICE], "allocations": [ALLOCATION]},
}
NODE = {
    "metadata": {"name": "node", "resourceVersion": "7", "labels": {}},
    "status": {"allocatable": CORES, "images": [{}]},
}

PARSED: list[tuple[Any, Any, Callable[[object], object]]] = [
    (POD, PodFields, parse_pod),
    (ACCELERATORS, AcceleratorNodeFields, parse_node),
    (NODE, NodeFields, parse_offer),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["1", "100", "Succeeded"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(thing: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The ways to all that is in it, itself the first."""
    inside: list[tuple[str | int, Any]] = []
    if isinstance(thing, dict):
        inside = list(thing.items())
    elif isinstance(thing, list):
        inside = list(enumerate(thing))
    return [way, *(deeper for key, each in inside for deeper in places(each, (*way, key)))]


def changed(thing: Any, way: tuple[str | int, ...], other: object) -> Any:
    """A copy with another thing at that place."""
    if not way:
        return other
    whole = inner = copy.deepcopy(thing)
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = other
    return whole


def outcome(parse: Callable[[object], object], thing: object) -> object:
    try:
        return parse(thing)
    except InvalidRequest as error:
        return str(error)


@pytest.mark.parametrize(("whole", "shape", "parse"), PARSED, ids=["pod", "accelerators", "node"])
def test_what_is_as_it_should_be_is_read_in_part(whole: Any, shape: Any, parse: Callable[[object], object]) -> None:
    part = reader_of(shape)(json.dumps(whole).encode())
    assert len(json.dumps(part)) < len(json.dumps(whole))
    assert parse(part) == parse(whole)
    assert not isinstance(outcome(parse, whole), str)


@given(st.data())
def test_what_is_read_in_part_is_parsed_as_what_is_read_whole(data: st.DataObject) -> None:
    whole, shape, parse = data.draw(st.sampled_from(PARSED))
    text = json.dumps(changed(whole, data.draw(st.sampled_from(places(whole))), data.draw(JSON))).encode()
    try:
        part = reader_of(shape)(text)
    except ValueError:
        # Then it is read whole.
        return
    assert outcome(parse, part) == outcome(parse, json.loads(text))
