"""The assigner with GPUs and EdgeTPUs beside each other, whatever comes in whatever order: no device is given out
beyond its hundred, what an exhaustive search finds room for is let through and nothing else, and who leads next knows
as much."""

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from edgeshare.contract.errors import EdgeshareError
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.preemption import victims
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.pods import parse_pod
from tests.kit.properties.examples import examples

RESOURCES = {"gpu": "edge/gpu-percent", "edgetpu": "edge/tpu-percent"}
KINDS = {resource: kind for kind, resource in RESOURCES.items()}
NODES = {"a": {"gpu": 2, "edgetpu": 1}, "b": {"gpu": 1}, "c": {"edgetpu": 2}, "d": {"gpu": 1, "edgetpu": 2}}
SIZES = st.sampled_from([10, 30, 50, 60, 100, 200])
LIMITS = st.fixed_dictionaries({}, optional=dict.fromkeys(KINDS, SIZES))

Json = dict[str, Any]


def devices_of(name: str) -> dict[str, str]:
    """The kind of each device of a node."""
    return {f"{name}-{kind}-{place}": kind for kind, count in NODES[name].items() for place in range(count)}


class Cluster(RuleBasedStateMachine):
    """An API server's objects, and an assigner that is told of them."""

    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[str, Json] = {}
        """Those that are bound, by uid."""
        self.sick: set[str] = set()
        self.count = 0
        self.lead(False)

    @rule(keeps_choice=st.booleans())
    def lead(self, keeps_choice: bool) -> None:
        """Another replica does, which begins with nothing."""
        self.assigner = Assigner(POLICIES["usable"], keeps_choice)
        self.assigner.pods_listed([parse_pod(pod) for pod in self.pods.values()])
        self.assigner.nodes_listed([self.node(name) for name in NODES])

    def node(self, name: str) -> Any:
        """What its plugin tells: each pod has what it was assigned."""
        devices = [
            {"id": each, "kind": kind, "model": kind, "memoryMiB": 0, "healthy": each not in self.sick}
            for each, kind in devices_of(name).items()
        ]
        allocations = [
            {
                "id": f"{kind[-3:]}-{uid}-{container}",
                "devices": ids,
                "unitsEach": min(100, self.limits(pod, container)[RESOURCES[kind]]),
                "memoryMiB": 0,
                "pod": {"uid": uid},
            }
            for uid, pod in self.pods.items()
            if pod["spec"]["nodeName"] == name
            for container, kind, ids in self.assigned(pod)
        ]
        return parse_node({"metadata": {"name": name}, "status": {"devices": devices, "allocations": allocations}})

    @staticmethod
    def limits(pod: Json, container: str) -> dict[str, int]:
        """What a container asks for."""
        (found,) = [each for each in pod["spec"]["containers"] if each["name"] == container]
        return dict(found["resources"]["limits"])

    @staticmethod
    def assigned(pod: Json) -> list[tuple[str, str, list[str]]]:
        """Container, kind and devices, as its annotation says."""
        written = json.loads(pod["metadata"]["annotations"]["edge/gpu-assignment"])
        return [
            (container, KINDS[resource], ids)
            for container, lists in written.items()
            for resource, ids in (lists if isinstance(lists, dict) else {RESOURCES["gpu"]: lists}).items()
        ]

    def free(self, name: str) -> dict[str, int]:
        """Of each device that is well."""
        left = {each: 100 for each in devices_of(name) if each not in self.sick}
        for pod in self.pods.values():
            for container, kind, ids in self.assigned(pod):
                for each in ids:
                    if each in left:
                        left[each] -= min(100, self.limits(pod, container)[RESOURCES[kind]])
        return left

    def has_room(self, name: str, asks: list[tuple[str, int]]) -> bool:
        """By trying all ways."""

        def fits(left: dict[str, int], asks: list[tuple[str, int]]) -> bool:
            if not asks:
                return True
            (kind, percent), *others = asks
            each, kinds = min(percent, 100), devices_of(name)
            there = [name for name, units in left.items() if kinds[name] == kind and units >= each]
            if percent > 100:
                whole = there[: percent // 100]
                return len(whole) == percent // 100 and fits({n: u for n, u in left.items() if n not in whole}, others)
            return any(fits({**left, device: left[device] - each}, others) for device in there)

        # Whole ones first: which of the idle ones they take makes no difference then.
        return fits(self.free(name), sorted(asks, key=lambda ask: -ask[1]))

    @rule(containers=st.lists(LIMITS, min_size=1, max_size=2), over=st.integers(0, 2))
    def place(self, containers: list[dict[str, int]], over: int) -> None:
        """A pod comes, is filtered, and bound to one of the nodes that are left."""
        self.count += 1
        uid = f"u{self.count}"
        asks = [(KINDS[resource], percent) for each in containers for resource, percent in each.items()]
        pod: Json = {
            "metadata": {"uid": uid, "namespace": "d", "name": uid, "annotations": {}},
            "spec": {
                "priority": over,
                "containers": [
                    {"name": f"c{place}", "resources": {"limits": limits}} for place, limits in enumerate(containers)
                ],
            },
        }
        asking = parse_pod(pod)
        rooms = [name for name in NODES if self.has_room(name, asks)]
        found = self.assigner.filter(asking, list(NODES))
        if not asks:
            assert found.nodes == list(NODES)
            return
        assert found.nodes == rooms or (len(found.nodes) == 1 and found.nodes[0] in rooms)
        for name in NODES:
            if name not in rooms:
                self.refused(asking, name)
        if found.nodes:
            best = max(self.assigner.prioritize(asking, found.nodes).items(), key=lambda each: each[1])[0]
            placed, holding = self.assigner.decide(asking, best)
            self.assigner.books.ledger.assume(holding)
            pod["metadata"]["annotations"]["edge/gpu-assignment"] = placed.assignment
            pod["spec"]["nodeName"] = best
            self.pods[uid] = pod
            self.assigner.pod_told("ADDED", parse_pod(pod))

    def refused(self, asking: Any, name: str) -> None:
        """It gets nothing there; and where somebody can go for it, it is only those of less priority."""
        try:
            self.assigner.decide(asking, name)
        except EdgeshareError:
            for uid in victims(self.assigner.books, asking, name, []) or ():
                assert self.pods[uid]["spec"]["priority"] < asking.priority
            return
        raise AssertionError(f"{asking} was given what node {name} does not have")

    @rule(which=st.integers(0, 1000))
    def end(self, which: int) -> None:
        """A pod is gone, and its node tells that it has let it go."""
        if self.pods:
            uid = sorted(self.pods)[which % len(self.pods)]
            pod = self.pods.pop(uid)
            self.assigner.pod_told("DELETED", parse_pod(pod))
            self.assigner.node_told("MODIFIED", self.node(pod["spec"]["nodeName"]))

    @rule(which=st.integers(0, 1000))
    def change_health(self, which: int) -> None:
        """A device is no longer well, or is again."""
        every = [(each, name) for name in NODES for each in devices_of(name)]
        device, name = every[which % len(every)]
        self.sick ^= {device}
        self.assigner.node_told("MODIFIED", self.node(name))

    @rule(name=st.sampled_from(sorted(NODES)))
    def tell(self, name: str) -> None:
        """A node tells what it lists by now."""
        self.assigner.node_told("MODIFIED", self.node(name))

    @invariant()
    def books_are_right(self) -> None:
        """Of each device as much is held as the annotations say, and never more than there is."""
        for _ in range(2):
            self.assigner.promises.lapse()
        for name in NODES:
            node = self.assigner.books.ledger.node(name)
            assert node is not None
            free = {each.id: node.free(each)[0] for each in node.inventory.devices if each.healthy}
            assert free == self.free(name)
            assert {each.id: each.kind for each in node.inventory.devices} == devices_of(name)
        assert self.assigner.books.flagged == {}
        assert not self.assigner.books.overcommitted()


Cluster.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestCluster = Cluster.TestCase
