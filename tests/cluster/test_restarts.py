"""Pods that share a GPU get over whatever of the node's own ends and starts again."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator

import pytest
from onenode.errors import NodeError
from onenode.executed import Percents, execute_for, executed_percents, have_shares, wait_until_executing
from onenode.layout import KUBELET_ROOT, NODE_NAME
from onenode.node import Node
from onenode.pods import WAIT, Pods
from onenode.release import HOST_FOLDERS
from onenode.workload import EXAMPLE

from edgeshare.client import ManagerClient
from edgeshare.errors import Unavailable
from edgeshare.names import GPU_PERCENT
from edgeshare.podresources import PodResources
from simgpu.machine import Machine

SHARES = {"half": 50, "third": 30, "fifth": 20}  # the example's
SETTLE_S = 2
JUDGED_S = 8
NS_PER_S = 1_000_000_000
LONG = ("--seconds", "600")
READY = "condition=Ready"
LOOK_S = 0.1
COME_BACK_S = 120  # a safety limit: the kubelet waits 10 s and longer with a container that was killed before
STATUS = '{.items[0].status.containerStatuses[?(@.name=="%s")]%s}'


@pytest.fixture(scope="module")
def example(node: Node, edgeshare: Machine) -> Iterator[None]:
    """The pods of the example, running."""
    node.kubectl("apply", "-f", str(EXAMPLE))
    wait_until_executing(edgeshare, *SHARES)
    yield
    node.kubectl("delete", WAIT, "-f", str(EXAMPLE))


def shares_of(executed: list[Percents]) -> Percents:
    """What the example's pods got of the GPU that they are on."""
    return next(percents for percents in executed if SHARES.keys() <= percents.keys())


def example_containers(node: Node) -> str:
    """The ids of the example's containers: others, when one of them was started again."""
    ids = "jsonpath={.items[*].status.containerStatuses[0].containerID}"
    return node.kubectl("get", "-f", str(EXAMPLE), "-o", ids)


def until(true: Callable[[], bool], what: str) -> None:
    """Return when something is so that tells nobody when it comes to be so."""
    deadline_s = time.monotonic() + COME_BACK_S
    while not true():
        assert time.monotonic() < deadline_s, f"not within {COME_BACK_S} s: {what}"
        time.sleep(LOOK_S)


def registrations(node: Node) -> int:
    """How often the plugin's container that runs now has registered with the kubelet."""
    words = ("--namespace=edgeshare", "daemonset/edgeshare", "--container=device-plugin")
    try:
        return node.kubectl("logs", *words).count("registered edge/gpu-percent")
    except NodeError:  # A kubelet that has just started does not know its pods yet.
        return 0


def kill(node: Node, container: str) -> None:
    """Kill one of edgeshare's containers, and return when another one has taken its place and is ready."""

    def told(field: str) -> str:
        return node.kubectl("get", "pods", "--namespace=edgeshare", "-o", f"jsonpath={STATUS % (container, field)}")

    before = told(".containerID")
    node.kill_container(before)
    until(lambda: told(".containerID") != before and told(".ready") == "true", f"{container} is back")


def clients() -> dict[str, int]:
    """Pod → how many programs of it the manager has as clients; nothing where no manager answers."""
    with ManagerClient(HOST_FOLDERS[0]) as manager:
        try:
            return {each.allocation.owner.pod: len(each.clients) for each in manager.status().allocations}
        except Unavailable:
            return {}


def units() -> dict[str, frozenset[str]]:
    """Pod → the units that the kubelet has given to it."""
    listed = asyncio.run(PodResources(KUBELET_ROOT / "pod-resources/kubelet.sock", GPU_PERCENT).list())
    return {pod: frozenset().union(*of.values()) for (_, pod), of in listed.items() if any(of.values())}


def test_example_shares_the_gpu_as_it_says(edgeshare: Machine, example: None) -> None:
    time.sleep(SETTLE_S)
    assert have_shares(shares_of(execute_for(edgeshare, JUDGED_S)), SHARES)


def test_kubelet_restart_leaves_shares_and_brings_the_units_back(
    node: Node, edgeshare: Machine, example: None, pods: Pods
) -> None:
    containers, registered, held = example_containers(node), registrations(node), units()
    begin_ns = edgeshare.look()

    node.restart_kubelet()
    until(lambda: registrations(node) > registered, "the plugin has registered again")
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=200", f"node/{NODE_NAME}", WAIT)
    pods.start("after", *LONG, limits={"edge/gpu-percent": 100})
    wait_until_executing(edgeshare, "after")
    time.sleep(max(0, JUDGED_S - (edgeshare.look() - begin_ns) / NS_PER_S))

    assert have_shares(shares_of(executed_percents(edgeshare, begin_ns, edgeshare.look())), SHARES)
    assert example_containers(node) == containers
    assert units().items() >= held.items()


def test_killed_manager_comes_back_to_its_clients(node: Node, edgeshare: Machine, example: None) -> None:
    containers = example_containers(node)

    kill(node, "share-manager")
    until(lambda: clients() == dict.fromkeys(SHARES, 1), "the pods' programs have joined the new manager")

    time.sleep(SETTLE_S)
    assert have_shares(shares_of(execute_for(edgeshare, JUDGED_S)), SHARES)
    assert example_containers(node) == containers


def test_killed_plugin_registers_again_and_gives_no_unit_twice(
    node: Node, edgeshare: Machine, example: None, pods: Pods
) -> None:
    pods.start("before", *LONG, limits={"edge/gpu-percent": 70})
    pods.wait(READY, "before")
    containers = example_containers(node)

    kill(node, "device-plugin")
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=200", f"node/{NODE_NAME}", WAIT)
    pods.start("beside", *LONG, limits={"edge/gpu-percent": 30})
    wait_until_executing(edgeshare, "beside")

    held = units()
    assert {pod: len(of) for pod, of in held.items()} == {**SHARES, "before": 70, "beside": 30}
    assert not any(one & other for one, other in itertools.combinations(held.values(), 2))
    assert pods.gpu("beside") == pods.gpu("before")
    assert clients() == dict.fromkeys(held, 1)
    assert example_containers(node) == containers
