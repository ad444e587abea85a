"""Pods that share a GPU get over whatever of the node's own ends and starts again."""

import itertools

from simgpu.machine import Machine
from tests.kit.manager.busy import assert_ranked
from tests.kit.onenode.installed.parts import MANAGER, PLUGIN, Parts
from tests.kit.onenode.installed.workload import SHARES, example_containers
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import Together, wait_until_executing
from tests.kit.onenode.pods.given import assert_all_agree, clients, listed
from tests.kit.onenode.pods.pods import WAIT, Pods
from tests.kit.processes.waiting import until

LONG = ("--seconds", "600")
READY = "condition=Ready"


def test_example_shares_the_gpu_as_it_says(edgeshare: Machine, example: None) -> None:
    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))


def test_kubelet_restart_leaves_shares_and_brings_the_units_back(
    node: Node, edgeshare: Machine, parts: Parts, example: None, pods: Pods
) -> None:
    containers, held, life = example_containers(node), listed(), parts.life()
    together = Together(edgeshare, SHARES)
    node.restart_kubelet()
    parts.until_registered_after(life)
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=200", f"node/{NODE_NAME}", WAIT)
    assert_ranked(together.percents(), list(SHARES))
    pods.start("after", *LONG, limits={"edge/gpu-percent": 100})
    wait_until_executing(edgeshare, "after")
    pods.delete("after")
    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))
    assert example_containers(node) == containers
    assert listed().items() >= held.items()


def test_killed_manager_comes_back_to_its_clients(node: Node, edgeshare: Machine, parts: Parts, example: None) -> None:
    containers = example_containers(node)

    parts.kill(MANAGER)
    until(lambda: clients() == dict.fromkeys(SHARES, 1), "the pods' programs have joined the new manager")

    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))
    assert example_containers(node) == containers


def test_killed_plugin_registers_again_and_gives_no_unit_twice(
    node: Node, edgeshare: Machine, parts: Parts, example: None, pods: Pods
) -> None:
    pods.start("before", *LONG, limits={"edge/gpu-percent": 70})
    pods.wait(READY, "before")
    containers, life = example_containers(node), parts.life()

    parts.kill(PLUGIN)
    parts.until_registered_after(life)
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=200", f"node/{NODE_NAME}", WAIT)
    pods.start("beside", *LONG, limits={"edge/gpu-percent": 30})
    wait_until_executing(edgeshare, "beside")

    held = {pod: units for (pod, _), units in listed().items()}
    assert {pod: len(of) for pod, of in held.items()} == {**SHARES, "before": 70, "beside": 30}
    assert not any(one & other for one, other in itertools.combinations(held.values(), 2))
    assert_all_agree(*held)
    assert pods.gpu("beside") == pods.gpu("before")
    until(lambda: clients() == dict.fromkeys(held, 1), "each pod's program is a client of the manager")
    assert example_containers(node) == containers
