"""The chart's own kube-scheduler on the node: pods that name no scheduler are placed by it, GPU by GPU, and go on to be
when the one that leads is gone."""

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from edgeshare.contract.assignment import parse_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import GPU_ASSIGNMENT
from simgpu.machine import Machine
from tests.kit.onenode.installed import release
from tests.kit.onenode.installed.release import NAME
from tests.kit.onenode.installed.scheduler import (
    AS_SHIPPED,
    IN_NAMESPACE,
    SCHEDULER,
    asks,
    import_scheduler,
    until_gone,
    until_scheduling,
)
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import Pods
from tests.kit.processes.command import run
from tests.kit.processes.waiting import until

RUNNING = "condition=Ready"
WAITS = "jsonpath={.status.conditions[0].reason}=Unschedulable"


@pytest.fixture
def scheduler(node: Node, edgeshare: Machine) -> Iterator[str]:
    """Its name, while it runs with two replicas."""
    import_scheduler(node)
    try:
        release.upgrade(node, more=AS_SHIPPED)
        until_scheduling(node)
        yield SCHEDULER
    finally:
        release.upgrade(node)
        until_gone(node)


def gpu(pods: Pods, name: str) -> str:
    """The GPU that a pod was assigned."""
    annotations = json.loads(pods.get(name, ".metadata.annotations"))
    (device_id,) = parse_assignment(annotations[GPU_ASSIGNMENT])[Accelerator.GPU]["main"]
    return device_id


def leader(node: Node) -> str:
    """The pod whose kube-scheduler holds the Lease."""
    holder = node.kubectl("get", IN_NAMESPACE, f"lease/{NAME}-scheduler", "--output=jsonpath={.spec.holderIdentity}")
    return holder.rpartition("_")[0]


def status(node: Node) -> dict[str, Any]:
    """What `kubectl edgeshare status` tells."""
    words = ("-m", "edgeshare.cli", "status", "--cluster", f"--kubeconfig={node.layout.kubeconfig}", "--json")
    told: dict[str, Any] = json.loads(run([sys.executable, *words]))
    return told


def taken(told: dict[str, Any]) -> dict[str, str]:
    """The GPU that each pod has, as its node tells."""
    return {each["pod"]: device["id"] for device in told["nodes"][0]["devices"] for each in device["taken"]}


def test_pods_get_the_gpu_that_has_room_whichever_replica_leads(scheduler: str, node: Node, pods: Pods) -> None:
    pods.create(asks("first", 60), asks("second", 60))
    pods.wait(RUNNING, "first", "second")
    assert {pods.get(name, ".spec.schedulerName") for name in ("first", "second")} == {scheduler}
    assert gpu(pods, "first") != gpu(pods, "second")
    # Of the node 80 units are free, and of each GPU 40.
    pods.create(asks("third", 60))
    pods.wait(WAITS, "third")
    why = "60 units of one GPU: gpu 0: 40 of 100 units free"
    assert why in pods.get("third", ".status.conditions[0].message")
    told = status(node)
    assert [(each["pod"], why in each["why"]) for each in told["waiting"]] == [("third", True)]
    held = {name: gpu(pods, name) for name in ("first", "second")}
    # The plugin tells of an allocation in its own time.
    until(lambda: taken(status(node)) == held, "the node tells who has which GPU")
    before = leader(node)
    node.kubectl("delete", IN_NAMESPACE, f"pod/{before}")
    until(lambda: leader(node) not in ("", before), "the other one leads")
    freed = gpu(pods, "first")
    pods.delete("first")
    pods.wait(RUNNING, "third")
    assert gpu(pods, "third") == freed
