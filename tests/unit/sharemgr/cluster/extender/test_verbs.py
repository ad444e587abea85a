"""The four verbs: what a kube-scheduler sends in, what it is answered. The fields are those of Go's types
(k8s.io/kube-scheduler, extender/v1/types.go)."""

import json
from collections.abc import Sequence
from inspect import iscoroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import InvalidRequest, Unavailable
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.extender.messages import NODES_MAX
from sharemgr.cluster.extender.metrics import Metrics
from sharemgr.cluster.extender.verbs import Verbs
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.pods import SharePod, parse_pod


class ApiServer:
    """Pods by name; Bindings are written at them."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], SharePod] = {}
        self.bound: list[SharePod] = []
        self.trouble: Exception | None = None

    async def bind(self, pod: SharePod) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.bound.append(pod)

    async def read(self, namespace: str, name: str) -> SharePod | None:
        if self.trouble is not None:
            raise self.trouble
        return self.pods.get((namespace, name))


class Extender:
    """Verbs, over two nodes with a GPU each."""

    def __init__(self) -> None:
        self.assigner = Assigner(POLICIES["usable"])
        self.assigner.nodes_listed([parse_node(node_json(name)) for name in ("n", "m")])
        self.api, self.metrics = ApiServer(), Metrics()
        self.binder = Binder(self.assigner, self.api, 60, lambda: 0.0)
        self.verbs = Verbs(self.assigner, self.binder, self.metrics)

    async def say(self, verb: str, message: object) -> Any:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        # As it goes over the wire.
        found = self.verbs.by_name[verb](body)
        return json.loads(json.dumps(await found if iscoroutine(found) else found))

    def counted(self, name: str, **labels: str) -> float:
        told = {
            sample.name: sample.value
            for family in self.metrics.families(self.assigner, self.binder)
            for sample in family.samples
            if labels.items() <= sample.labels.items()
        }
        return told.get(f"edgeshare_assigner_{name}", 0.0)


def node_json(name: str) -> dict[str, Any]:
    gpu = {"id": f"gpu-{name}", "kind": "gpu", "model": "T4", "memoryMiB": 1000, "healthy": True}
    return {"metadata": {"name": name}, "status": {"devices": [gpu], "allocations": []}}


def pod_json(uid: str, percent: str, **spec: object) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"limits": {"edge/gpu-percent": percent}}}]
    return {"metadata": {"uid": uid, "namespace": "d", "name": uid}, "spec": {"containers": containers, **spec}}


def asked(uid: str, percent: str, nodes: Sequence[str] = ("n", "m", "unknown")) -> dict[str, Any]:
    return {"Pod": pod_json(uid, percent), "Nodes": None, "NodeNames": list(nodes)}


def binding(uid: str, node: str = "n") -> dict[str, str]:
    return {"PodName": uid, "PodNamespace": "d", "PodUID": uid, "Node": node}


async def test_a_pod_is_filtered_ranked_and_bound_and_the_next_is_told_why_not() -> None:
    extender = Extender()
    found = await extender.say("filter", asked("p", "60"))
    assert found["NodeNames"] == ["n", "m"]
    assert set(found) == {"NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}
    assert set(found["FailedNodes"]) == {"unknown"}
    assert (found["FailedAndUnresolvableNodes"], found["Error"]) == ({}, "")
    scores = await extender.say("prioritize", asked("p", "60", found["NodeNames"]))
    assert all(set(each) == {"Host", "Score"} for each in scores)
    assert sorted(each["Score"] for each in scores) == [9, 10]
    assert await extender.say("bind", binding("p")) == {"Error": ""}
    assert [each.assignment for each in extender.api.bound] == ['{"main":["gpu-n"]}']
    turned_down = await extender.say("filter", asked("q", "50", ["n"]))
    assert turned_down["NodeNames"] == []
    assert turned_down["FailedNodes"] == {
        "n": "50 units of one GPU: gpu 0: 40 of 100 units free, 400 of 1,000 MiB free"
    }
    assert extender.counted("bindings_total") == extender.counted("turned_down_total") == 1


async def test_a_pod_of_no_gpu_is_let_through_and_bound_without_an_assignment() -> None:
    extender = Extender()
    ordinary = pod_json("p", "0")
    ordinary["metadata"]["annotations"] = {"edge/gpu-assignment": '{"main":["gpu-n"]}'}
    extender.api.pods["d", "p"] = parse_pod(ordinary)
    message = asked("p", "0")
    found = await extender.say("filter", message)
    assert (found["NodeNames"], found["FailedNodes"]) == (["n", "m", "unknown"], {})
    assert [each["Score"] for each in await extender.say("prioritize", message)] == [0, 0, 0]
    victims = {node: {"Pods": [{"UID": "low"}]} for node in ("n", "unknown")}
    proposed = {"Pod": ordinary, "NodeNameToMetaVictims": victims}
    told = (await extender.say("preempt", proposed))["NodeNameToMetaVictims"]
    assert {node: each["Pods"] for node, each in told.items()} == {n: each["Pods"] for n, each in victims.items()}
    assert await extender.say("bind", binding("p", "unknown")) == {"Error": ""}
    assert [(each.node, each.assignment) for each in extender.api.bound] == [("unknown", None)]
    extender.api.pods["d", "p"] = extender.api.bound[0]
    assert await extender.say("bind", binding("p", "unknown")) == {"Error": ""}
    assert len(extender.api.bound) == 1
    assert "is bound to node unknown already" in (await extender.say("bind", binding("p")))["Error"]
    assert extender.binder.in_doubt == 0


async def test_what_can_never_be_had_is_unresolvable_on_every_node() -> None:
    found = await Extender().say("filter", asked("p", "50%"))
    assert (found["NodeNames"], found["FailedNodes"]) == ([], {})
    assert set(found["FailedAndUnresolvableNodes"]) == {"n", "m", "unknown"}
    assert not any("%" in why for why in found["FailedAndUnresolvableNodes"].values())


async def test_what_binding_came_to_is_told_as_an_error_without_a_percent_sign() -> None:
    extender = Extender()
    found = await extender.say("bind", binding("nobody"))
    assert found == {"Error": "there is no pod d/nobody with uid nobody any more"}
    await extender.say("filter", asked("p", "60"))
    assert set(await extender.say("bind", binding("p", "unknown"))) == {"Error"}
    extender.api.trouble = Unavailable("the API server is 100% busy")
    assert "100 percent busy" in (await extender.say("bind", binding("p")))["Error"]
    assert extender.counted("bindings_failed_total", reason="NotFound") == 2
    assert extender.counted("bindings_failed_total", reason="Unavailable") == 1


async def test_victims_are_told_by_node_with_their_uids() -> None:
    extender = Extender()
    low = pod_json("low", "80", nodeName="n")
    low["metadata"]["annotations"] = {"edge/gpu-assignment": '{"main":["gpu-n"]}'}
    extender.assigner.pods_listed([parse_pod(low)])
    told = {
        "n": {"Pods": [{"UID": "cpu"}], "NumPDBViolations": 2},
        "m": {"Pods": [{"UID": "cpu"}], "NumPDBViolations": 1},
        "unknown": {"Pods": None},
    }
    found = await extender.say(
        "preempt", {"Pod": pod_json("p", "50", priority=1), "NodeNameToVictims": None, "NodeNameToMetaVictims": told}
    )
    assert found == {
        "NodeNameToMetaVictims": {
            "n": {"Pods": [{"UID": "low"}, {"UID": "cpu"}], "NumPDBViolations": 2},
            "m": {"Pods": [{"UID": "cpu"}], "NumPDBViolations": 1},
        }
    }
    nothing = await extender.say("preempt", {"Pod": pod_json("p", "150", priority=1), "NodeNameToMetaVictims": told})
    assert nothing == {"NodeNameToMetaVictims": {}}


async def test_nobody_else_goes_for_a_pod_whose_victims_are_gone_but_still_listed() -> None:
    extender = Extender()
    low = pod_json("low", "80", nodeName="m")
    low["metadata"]["annotations"] = {"edge/gpu-assignment": '{"main":["gpu-m"]}'}
    extender.assigner.pods_listed([parse_pod(low)])
    lingering = {"id": "a", "devices": ["gpu-n"], "unitsEach": 80, "memoryMiB": 800, "pod": {"uid": "victim"}}
    still = node_json("n")
    still["status"]["allocations"] = [lingering]
    extender.assigner.node_told("MODIFIED", parse_node(still))
    told = {"m": {"Pods": [{"UID": "low"}], "NumPDBViolations": 0}}

    async def asked_of(percent: str, **status: str) -> Any:
        asking = pod_json("p", percent, priority=1) | {"status": status}
        return await extender.say("preempt", {"Pod": asking, "NodeNameToMetaVictims": told})

    assert await asked_of("50", nominatedNodeName="n") == {"NodeNameToMetaVictims": {}}
    # Nominated to none, or to one that it does not fit even then, or to one that nobody leaves.
    goes = {"NodeNameToMetaVictims": told}
    assert await asked_of("50") == goes
    lingering["devices"] = ["gpu-elsewhere"]
    extender.assigner.node_told("MODIFIED", parse_node(still | {"status": {**still["status"], "devices": []}}))
    assert await asked_of("50", nominatedNodeName="n") == goes
    extender.assigner.node_told("MODIFIED", parse_node(node_json("n")))
    assert await asked_of("50", nominatedNodeName="n") == goes


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"Pod":null,"NodeNames":["n"]}',
        b'{"Pod":{},"NodeNames":["n"],"NodeNameToMetaVictims":{}}',
        b'{"Pod":{"metadata":{"name":"p"}},"NodeNames":["n"],"NodeNameToMetaVictims":{}}',
        b'{"Pod":{"metadata":{"uid":"u"}},"NodeNames":["n"],"NodeNameToMetaVictims":{}}',
        b'{"Pod":{"metadata":{"uid":"u","name":"a\\nb"}},"NodeNames":["n"],"NodeNameToMetaVictims":{}}',
        b'{"Pod":{"metadata":{"uid":"u","name":"p"},"spec":[]},"NodeNames":["n"],"NodeNameToMetaVictims":{}}',
        b'{"Pod":{"metadata":{"uid":"u","name":"p"}},"NodeNames":"n","NodeNameToMetaVictims":[]}',
    ],
)
async def test_what_cannot_be_read_is_an_invalid_request_in_one_line_and_counted(verb: str, body: bytes) -> None:
    extender = Extender()
    with pytest.raises(InvalidRequest) as caught:
        await extender.say(verb, body)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    assert extender.counted("messages_refused_total", verb=verb) == 1
    assert extender.counted("verb_seconds_count", verb=verb) == 1


async def test_that_whole_nodes_are_sent_is_said_to_kube_scheduler_where_it_reads() -> None:
    extender = Extender()
    message = {"Pod": pod_json("p", "50"), "Nodes": {"items": []}, "NodeNames": None}
    said = "NodeNames is missing: set nodeCacheCapable: true for this extender of kube-scheduler"
    assert await extender.say("filter", message) == {"Error": said}
    assert extender.counted("messages_refused_total", verb="filter") == 1
    assert extender.counted("verb_seconds_count", verb="filter") == 1
    for verb, why in (("prioritize", "set nodeCacheCapable"), ("preempt", "set nodeCacheCapable"), ("bind", "PodName")):
        with pytest.raises(InvalidRequest, match=why) as caught:
            await extender.say(verb, message)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 500
        assert extender.counted("messages_refused_total", verb=verb) == 1
        assert extender.counted("verb_seconds_count", verb=verb) == 1


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_more_nodes_than_kubernetes_has_are_refused(verb: str) -> None:
    extender = Extender()
    with pytest.raises(InvalidRequest, match="NodeNames: List should have at most 20000 items"):
        await extender.say(verb, asked("p", "50", ["n"] * (NODES_MAX + 1)))
    answer = await extender.say(verb, asked("p", "50", [f"x{number}" for number in range(NODES_MAX)]))
    assert len(answer["FailedNodes"] if verb == "filter" else answer) == NODES_MAX


async def test_keys_that_later_versions_add_are_let_through() -> None:
    extender = Extender()
    message = asked("p", "50") | {"Later": [{}]}
    message["Pod"]["metadata"]["managedFields"] = [{"later": 1}]
    message["Pod"]["later"] = 5
    assert (await extender.say("filter", message))["NodeNames"] == ["n", "m"]


async def test_unknown_nodes_pass_nowhere_and_break_nothing() -> None:
    extender = Extender()
    names = ["", "unknown", "a\nb", "%", "x" * 1000, "n"]
    found = await extender.say("filter", asked("p", "50", names))
    assert found["NodeNames"] == ["n"]
    assert set(found["FailedNodes"]) == set(names) - {"n"}
    assert [each["Score"] for each in await extender.say("prioritize", asked("q", "50", names))] == [0, 0, 0, 0, 0, 10]
    assert (await extender.say("filter", asked("p", "50", [])))["NodeNames"] == []
    assert await extender.say("prioritize", asked("p", "50", [])) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["n", "50", "p"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
MESSAGE = {
    **asked("p", "50"),
    **binding("p"),
    "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "v"}], "NumPDBViolations": 0}},
}


@given(
    st.sampled_from(["filter", "prioritize", "bind", "preempt"]),
    st.dictionaries(st.sampled_from(list(MESSAGE)), JSON, max_size=2),
    st.dictionaries(st.sampled_from(["metadata", "spec", "status", "later"]), JSON, max_size=2),
)
async def test_whatever_is_said_is_answered_or_refused(
    verb: str, others: dict[str, object], of_pod: dict[str, object]
) -> None:
    extender = Extender()
    pod = MESSAGE["Pod"]
    assert isinstance(pod, dict)
    refused = ""
    try:
        await extender.say(verb, MESSAGE | {"Pod": pod | of_pod} | others)
    except InvalidRequest as error:
        refused = str(error)
    assert refused.isprintable()
    assert extender.counted("messages_refused_total", verb=verb) == bool(refused)
