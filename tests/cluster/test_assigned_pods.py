"""Pods get the GPU that their Binding assigns, on a real kubelet; and the node tells what it has handed out.

The test is the cluster part here: it binds the pods itself, with the annotation in the Binding."""

from typing import Any

import pytest

from edgeshare.contract.assignment import write_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import ACCELERATOR_NODES, GPU_ASSIGNMENT, GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.binder import Binder, left_to_binder
from tests.kit.onenode.pods.pods import WAIT, Pods, container, pod
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

RUNNING = "condition=Ready"
BURN = ("--seconds", "600")


def accelerator_node(node: Node) -> dict[str, Any]:
    """What the node's AcceleratorNode says."""
    found: dict[str, Any] = node.told(f"{ACCELERATOR_NODES}/{NODE_NAME}")["status"]
    return found


def told(node: Node) -> dict[str, Any]:
    """Pod → its allocation, as the node's AcceleratorNode says."""
    return {each["pod"]["name"]: each for each in accelerator_node(node)["allocations"] if "pod" in each}


def make(pods: Pods, name: str, percent: int) -> None:
    """A pod that no scheduler looks at."""
    pods.create(left_to_binder(pod(name, [container(name, "main", *BURN, limits={GPU_PERCENT: percent})])))


def may(node: Node, user: str, *right: str) -> bool:
    """Whether somebody has a right."""
    try:
        node.kubectl("auth", "can-i", *right, f"--as={user}")
    except NodeError:
        return False
    return True


@pytest.mark.each_kubelet
def test_equal_pods_get_each_the_gpu_of_its_binding(kubelet: str, node: Node, pods: Pods) -> None:
    first, second = (device["id"] for device in accelerator_node(node)["devices"])
    binder = Binder(node)
    wanted = {f"equal-{number}": gpu for number, gpu in enumerate([second, first, second, first, first, second])}
    for name in wanted:
        make(pods, name, 30)
    # Back to back, so that several are bound before the first is admitted.
    for name, gpu in wanted.items():
        binder.bind(name, [gpu])
    pods.wait(RUNNING, *wanted)
    assert {name: pods.gpu(name) for name in wanted} == wanted
    until(lambda: wanted.keys() <= told(node).keys(), "the node tells of all")
    made = told(node)
    for name, gpu in wanted.items():
        assert (made[name]["devices"], made[name]["unitsEach"]) == ([gpu], 30)
        assert made[name]["pod"]["uid"] == pods.get(name, ".metadata.uid")
    pods.delete(*wanted)
    node.kubectl("wait", "--for=jsonpath={.status.allocationCount}=0", f"acceleratornode/{NODE_NAME}", WAIT)


@pytest.mark.each_kubelet
def test_a_pod_whose_gpu_is_full_or_missing_fails_with_the_reason(kubelet: str, node: Node, pods: Pods) -> None:
    first, _ = (device["id"] for device in accelerator_node(node)["devices"])
    binder = Binder(node)
    for name, gpu in (("holder", first), ("too-many", first), ("nowhere", "GPU-nowhere")):
        make(pods, name, 60)
        binder.bind(name, [gpu])
        pods.wait(RUNNING if name == "holder" else "jsonpath={.status.phase}=Failed", name)
    assert "but free are 40 of" in pods.get("too-many", ".status.message")
    assert "is not on this node" in pods.get("nowhere", ".status.message")


def test_a_pod_that_the_scheduler_bound_gets_its_assignment_written(kubelet: str, node: Node, pods: Pods) -> None:
    pods.start("by-itself", *BURN, limits={GPU_PERCENT: 20})
    pods.wait(RUNNING, "by-itself")
    written = r"jsonpath={.metadata.annotations.edge/gpu-assignment}"
    node.kubectl("wait", f"--for={written}", "pod/by-itself", WAIT)
    assert pods.get("by-itself", ".metadata.annotations.edge/gpu-assignment") == write_assignment(
        {Accelerator.GPU: {"main": (pods.gpu("by-itself"),)}}
    )


def test_an_assignment_is_not_forged_through_a_service_account(node: Node, edgeshare: Machine, pods: Pods) -> None:
    make(pods, "victim", 10)
    node.kubectl("create", "clusterrolebinding", "forger", "--clusterrole=edit", "--user=forger")
    try:
        # The API server learns by a watch who may do what.
        until(lambda: may(node, "forger", "patch", "pods"), "the forger may change pods")
        with pytest.raises(NodeError, match="is written by edgeshare alone"):
            node.kubectl("annotate", "pod", "victim", f"{GPU_ASSIGNMENT}=x", "--as=forger")
    finally:
        node.kubectl("delete", "clusterrolebinding", "forger")
