"""What kube-scheduler says to an extender: read as Go writes it, or refused in one line."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.extender.messages import (
    NODES_MAX,
    VICTIMS_MAX,
    Args,
    BindingArgs,
    Candidates,
    Message,
    PreemptionArgs,
    parse,
    parse_args,
    parse_binding,
)

BINDING = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n"}
MODELS = (Args, BindingArgs, PreemptionArgs)


def refused(model: type[Message], body: bytes) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse(model, body)
    text = str(caught.value)
    assert text.startswith(f"expected {model.__name__} of kube-scheduler's extender: ")
    assert text.isprintable()
    assert len(text) < 500
    return text


def test_fields_are_called_as_in_go_and_unknown_ones_are_let_through() -> None:
    args = parse(Args, b'{"Pod":{"a":[1]},"Nodes":null,"NodeNames":["n","m"],"Later":{}}')
    assert (args.pod, args.node_names) == ({"a": [1]}, ["n", "m"])
    binding = parse_binding(json.dumps(BINDING | {"Later": 1}).encode())
    assert (binding.namespace, binding.name, binding.uid, binding.node) == ("d", "p", "u", "n")
    told = {"n": {"Pods": [{"UID": "u", "Later": 1}], "NumPDBViolations": 3}, "m": {"Pods": None}, "o": {}}
    preemption = parse(PreemptionArgs, json.dumps({"Pod": {}, "NodeNameToMetaVictims": told}).encode())
    assert [each.uid for each in preemption.victims["n"].pods or ()] == ["u"]
    assert preemption.victims["n"].violations == 3
    assert preemption.victims["m"].pods is preemption.victims["o"].pods is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"5",
        b'"Pod"',
        b"{}",
        b"\xff",
        b"[" * 100_000,
        b'{"Pod":' * 5_000,
        b'{"Pod":5}',
        b"{}{}",
    ],
)
def test_what_is_none_is_refused_in_one_line(model: type[Message], body: bytes) -> None:
    refused(model, body)


@pytest.mark.parametrize("names", [5, "n", {}, [5], [None], [["n"]], ["n"] * (NODES_MAX + 1)])
def test_node_names_are_a_list_of_up_to_20_000_names(names: object) -> None:
    assert ": NodeNames" in refused(Args, json.dumps({"Pod": {}, "NodeNames": names}).encode())


@pytest.mark.parametrize(
    "victims",
    [
        {f"n{number}": {} for number in range(NODES_MAX + 1)},
        {"n": {"Pods": [{"UID": "u"}] * (VICTIMS_MAX + 1)}},
    ],
)
def test_victims_are_of_as_many_nodes_and_so_many_of_each(victims: object) -> None:
    told = refused(PreemptionArgs, json.dumps({"Pod": {}, "NodeNameToMetaVictims": victims}).encode())
    assert ": NodeNameToMetaVictims" in told


def test_as_many_nodes_as_are_allowed_are_read() -> None:
    assert len(parse_args(json.dumps({"Pod": {}, "NodeNames": ["n"] * NODES_MAX}).encode()).names) == 20_000
    assert parse_args(b'{"Pod":{},"NodeNames":[]}').names == []


@pytest.mark.parametrize("others", ["", ',"NodeNames":null', ',"Nodes":{"items":[]}'])
def test_whole_nodes_instead_of_names_are_refused_with_what_to_set(others: str) -> None:
    args = parse_args(f'{{"Pod":{{}}{others}}}'.encode())
    with pytest.raises(InvalidRequest, match="NodeNames is missing: set nodeCacheCapable: true"):
        _ = args.names
    preemption = parse(PreemptionArgs, b'{"Pod":{},"NodeNameToVictims":{}}')
    with pytest.raises(InvalidRequest, match="NodeNameToMetaVictims is missing: set nodeCacheCapable: true"):
        _ = preemption.victims


@pytest.mark.parametrize("key", list(BINDING))
@pytest.mark.parametrize("value", [None, "", 5, [], {}, "x" * 254, "a/../b", "..", "a\nb", "a?b", "ä"])
def test_a_binding_names_its_pod_and_node_as_kubernetes_can(key: str, value: object) -> None:
    for told in (BINDING | {key: value}, {name: text for name, text in BINDING.items() if name != key}):
        body = json.dumps(told).encode()
        assert f": {key}: " in refused(BindingArgs, body)
        with pytest.raises(InvalidRequest, match=f": {key}: "):
            parse_binding(body)


def test_the_names_that_kubernetes_gives_are_read() -> None:
    uid = "8c2f0c3e-6d6b-4c9c-9a44-3a9b6f0d2c11"
    told = {"PodName": "web-0.a", "PodNamespace": "kube-system", "PodUID": uid, "Node": "ip-10-0-0-1.eu.internal"}
    assert parse_binding(json.dumps(told).encode()) == ("kube-system", "web-0.a", uid, "ip-10-0-0-1.eu.internal")
    assert parse_binding(json.dumps(told | {"Node": "n" * 253}).encode()).node == "n" * 253


@pytest.mark.parametrize(
    "victims",
    [
        5,
        [],
        {"n": 5},
        {"n": None},
        {"n": {"Pods": {}}},
        {"n": {"Pods": [5]}},
        {"n": {"Pods": [None]}},
        {"n": {"Pods": [{}]}},
        {"n": {"Pods": [{"UID": 5}]}},
        {"a\nb" * 999: {"Pods": [{"UID": "u" * 254}]}},
        {"n": {"NumPDBViolations": "many"}},
        {"n\u2028": {"NumPDBViolations": 0.5}},
    ],
)
def test_victims_of_another_form_are_refused(victims: object) -> None:
    assert "NodeNameToMetaVictims" in refused(
        PreemptionArgs, json.dumps({"Pod": {}, "NodeNameToMetaVictims": victims}).encode()
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["Pod", "NodeNames", "NodeNameToMetaVictims", *BINDING])


@given(st.sampled_from(MODELS), st.dictionaries(KEYS, JSON) | JSON)
def test_any_json_is_read_or_refused_in_one_line(model: type[Message], thing: object) -> None:
    body = json.dumps(thing).encode()
    try:
        parse(model, body)
    except InvalidRequest:
        refused(model, body)


def names_by(read: Callable[[bytes], Args | Candidates], body: bytes) -> list[str] | str | None:
    """The names that it reads, or why it refuses them."""
    try:
        return read(body).node_names
    except InvalidRequest as error:
        return f"refused: {error}"


@pytest.mark.parametrize("names", [["n"] * NODES_MAX, ["n"] * (NODES_MAX + 1), None, 5])
def test_of_what_filter_is_asked_is_read_what_is_looked_at(names: object) -> None:
    told = {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"volumes": []}, "status": None}
    assert parse_args(json.dumps({"Pod": told}).encode()).pod == {
        "metadata": {"name": "p", "labels": {}},
        "spec": {},
        "status": None,
    }
    body = json.dumps({"Pod": told, "NodeNames": names, "Later": {}}).encode()
    assert names_by(parse_args, body) == names_by(partial(parse, Args), body)


@given(st.dictionaries(st.sampled_from(["Pod", "NodeNames", "Later"]), JSON) | JSON)
def test_what_filter_is_asked_is_refused_as_ever(thing: object) -> None:
    body = json.dumps(thing).encode()
    assert names_by(parse_args, body) == names_by(partial(parse, Args), body)
