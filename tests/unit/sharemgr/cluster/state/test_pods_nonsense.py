"""JSON that is no pod, or none that any node runs, is told in one line."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.pods import CONTAINERS_MAX, parse_pod
from tests.kit.assigner.pod_json import MEMORY, PERCENT, container, pod, pod_json, sidecar

T = TypeVar("T")


@pytest.mark.parametrize(
    "thing",
    [
        None,
        [],
        "pod",
        5,
        {},
        {"metadata": None},
        {"metadata": {"name": "p"}},
        {"metadata": {"uid": "u"}},
        {"metadata": []},
        {"metadata": {"uid": 5, "name": "p"}},
        pod_json(name="a\nb"),
        pod_json(name="\ud800"),
        pod_json(uid="u" * 254),
        pod_json() | {"spec": 5},
        pod_json() | {"status": "Running"},
        pod_json(labels=[]),
    ],
)
def test_what_is_no_pod_is_an_invalid_request_in_one_line(thing: object) -> None:
    with pytest.raises(InvalidRequest, match="expected") as caught:
        parse_pod(thing)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("key", ["initContainers", "containers"])
def test_more_containers_than_any_node_runs_are_a_fault_and_not_looked_at(key: str) -> None:
    many = pod_json(container("main", "50"))
    # Each of them would be a fault of its own.
    many["spec"][key] = [None] * 40_000
    assert parse_pod(many).fault == f"spec.{key} has 40000 containers: no node runs over {CONTAINERS_MAX} of a pod"


def test_a_pod_may_have_as_many_containers_as_any_node_runs() -> None:
    most = pod(*(container(f"c{number}", "1") for number in range(CONTAINERS_MAX)))
    assert (most.fault, most.request.units) == ("", CONTAINERS_MAX)


@pytest.mark.parametrize("containers", [5, True, "ab", {"a": 1}, [5], ["a"], [None], [{"resources": 5}]])
def test_containers_that_are_none_are_a_fault(containers: object) -> None:
    told = pod_json()
    for key in ("containers", "initContainers"):
        fault = parse_pod(told | {"spec": {key: containers}}).fault
        assert fault.startswith("expected ")
        assert fault.isprintable()


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["50", "1k", "100", "0"])
)
KEYS = st.text(max_size=3) | st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "uid",
        "name",
        "namespace",
        "annotations",
        "labels",
        "containers",
        "initContainers",
        "resources",
        "limits",
        "restartPolicy",
        "priority",
        "phase",
        "nodeName",
        PERCENT,
        MEMORY,
        "edge/gpu-affinity",
        "edge/gpu-model",
        "edge/gpu-exclusion",
        "edge/share-class",
        "edge/gpu-assignment",
        "resourceVersion",
    ]
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def paths(thing: object, here: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = list(thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ())
    return [here, *(path for key, inner in items for path in paths(inner, (*here, key)))]


def a_whole_pod() -> dict[str, Any]:
    told = pod_json(
        container("a", "40", "100"),
        init=[sidecar("s", "10", "100"), container("i", "10", "50")],
        labels={"edge/gpu-affinity": "x", "edge/gpu-exclusion": "y"},
        annotations={"edge/gpu-model": "T4", "edge/gpu-assignment": '{"a":["g"],"i":["g"],"s":["g"]}'},
        resourceVersion="1",
    )
    told["spec"] |= {"nodeName": "n", "priority": 1}
    return told | {"status": {"phase": "Running"}}


PATHS = paths(a_whole_pod())


def tried(call: Callable[[], T]) -> tuple[T | None, str]:
    """What it returns, or why the request is invalid."""
    try:
        return call(), ""
    except InvalidRequest as error:
        return None, str(error)


@given(st.sampled_from(PATHS), JSON)
@example((), float("nan"))
@example(("spec", "containers"), 5)
@example(("spec", "containers", 0, "resources", "limits", PERCENT), 10**4000)
@example(("spec", "containers", 0, "name"), "a\nb")
def test_anything_at_any_place_of_a_pod_is_read_or_told_in_one_line(path: tuple[str | int, ...], thing: object) -> None:
    told: Any = a_whole_pod()
    if not path:
        told = thing
    else:
        inner = told
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = thing
    parsed, wrong = tried(lambda: parse_pod(told))
    assert wrong.isprintable()
    if parsed is not None:
        assert parsed.fault.isprintable()
        assert not (parsed.fault and parsed.request.asks)
        assert len(parsed.request.asks) == len(parsed.containers)
        assert tried(parsed.assigned)[1].isprintable()


@given(JSON)
def test_any_json_is_a_pod_or_told_in_one_line(thing: object) -> None:
    parsed, wrong = tried(lambda: parse_pod(thing))
    assert wrong.isprintable()
    assert parsed is None or parsed.fault.isprintable()
