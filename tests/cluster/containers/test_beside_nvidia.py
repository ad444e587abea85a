"""Beside NVIDIA's own parts on a node: its device plugin, of which a stand-in is registered at the real kubelet, and
what GPU feature discovery and the GPU operator write on the Node."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from labeller.names import GPU_COUNT, GPU_PRODUCT
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.kubelet.time_sliced import TimeSliced
from tests.kit.onenode.images import PROJECT
from tests.kit.onenode.installed.labels import labels, ours
from tests.kit.onenode.installed.parts import PLUGIN, Parts
from tests.kit.onenode.installed.release import MACHINE, NAME
from tests.kit.onenode.layout import NODE_NAME, PLUGIN_SOCKET
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT, Manifest, Pods, container, pod
from tests.kit.processes.waiting import until

READY = "condition=Ready"
LONG = ("--seconds", "600")
OURS, THEIRS = "edge/gpu-percent", "nvidia.com/gpu"
NODE = f"node/{NODE_NAME}"
REPLICAS = 4
TAINT = f"{THEIRS}=present:NoSchedule"
TOLERATES = {"key": THEIRS, "operator": "Exists", "effect": "NoSchedule"}
DISCOVERED = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "Another-Spelling",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/gpu.replicas": str(REPLICAS),
}
"""Labels of GPU feature discovery."""


def allocatable(node: Node, resource: str, units: int) -> None:
    """Returns when the kubelet says so."""
    name = resource.replace(".", r"\.")
    node.kubectl("wait", f"--for=jsonpath={{.status.allocatable.{name}}}={units}", NODE, WAIT)


def doctor() -> list[str]:
    """What it says here of other plugins."""
    words = [sys.executable, "-m", "edgeshare.cli", "doctor", "--json"]
    done = subprocess.run(
        words, cwd=PROJECT, env={**os.environ, **variables(MACHINE)}, stdout=subprocess.PIPE, text=True, check=False
    )
    return [each["text"] for each in json.loads(done.stdout) if each["subject"] == "plugins"]


def events(node: Node, uuid: str) -> list[str]:
    """Of the Node, that a GPU is advertised twice."""
    words = ("get", "events", "--all-namespaces", "--field-selector=reason=DeviceAdvertisedTwice", "--output=json")
    return [each["message"] for each in json.loads(node.kubectl(*words))["items"] if uuid in each["message"]]


def asks(name: str, resource: str, units: int, **spec: object) -> Manifest:
    """A pod that runs."""
    made = pod(name, [container(name, "main", *LONG, limits={resource: units})])
    made["spec"] |= spec
    return made


@pytest.fixture
def time_sliced(node: Node, edgeshare: Machine, parts: Parts) -> Iterator[str]:
    """The UUID of the second GPU, which NVIDIA's plugin hands out, too. In the end ours has never heard of it."""
    uuid = edgeshare.gpus()[1].uuid
    with TimeSliced([uuid], REPLICAS).registered(PLUGIN_SOCKET.parent):
        yield uuid
    # What it once saw of another plugin it believes for minutes.
    allocatable(node, THEIRS, 0)
    parts.kill(PLUGIN)
    allocatable(node, OURS, 200)


def test_a_gpu_that_nvidias_plugin_slices_is_left_to_it_and_everybody_is_told(
    node: Node, pods: Pods, time_sliced: str
) -> None:
    allocatable(node, THEIRS, REPLICAS)
    allocatable(node, OURS, 100)
    said = f"GPU {time_sliced} is not shared: {THEIRS} on this node has it too; leave it out of one of the two plugins'"
    until(lambda: any(each.startswith(said) for each in events(node, time_sliced)), "there is an event of the node")
    (told,) = doctor()
    assert told.startswith(said)
    pods.create(asks("theirs", THEIRS, 1), asks("ours", OURS, 60))
    pods.wait(READY, "theirs", "ours")
    assert pods.gpu("theirs") == time_sliced
    assert pods.gpu("ours") not in ("", time_sliced)


def test_labels_of_gpu_feature_discovery_and_ours_stand_beside_each_other(node: Node, edgeshare: Machine) -> None:
    set_by = "--field-manager=nfd-master"
    found = [f"{name}={value}" for name, value in DISCOVERED.items()]
    until(lambda: {GPU_PRODUCT, GPU_COUNT} <= ours(node), "the node is labelled by ours")
    node.kubectl("label", NODE, set_by, *found)
    try:
        told = {name: labels(node)[name] for name in ours(node)}
        # Each writes its own anew where they were taken away, and nothing else.
        node.kubectl("label", NODE, f"{GPU_PRODUCT}-")
        until(lambda: GPU_PRODUCT in labels(node), "ours is there again")
        assert labels(node) == {**labels(node), **told, **DISCOVERED}
        assert not DISCOVERED.keys() & ours(node)
    finally:
        node.kubectl("label", NODE, set_by, *(f"{name}-" for name in DISCOVERED))
    assert {name: labels(node)[name] for name in ours(node)} == told


def test_a_node_with_the_taint_of_gpu_nodes_has_our_parts_and_the_pods_that_tolerate_it(
    node: Node, edgeshare: Machine, parts: Parts, pods: Pods
) -> None:
    life = parts.life()
    node.kubectl("taint", "node", NODE_NAME, TAINT)
    try:
        for part in (NAME, f"{NAME}-labeller"):
            selector = f"--selector=app.kubernetes.io/name={part}"
            node.kubectl("delete", WAIT, f"--namespace={NAME}", "pods", selector)
            node.kubectl("rollout", "status", f"--namespace={NAME}", f"daemonset/{part}", WAIT)
        # A DaemonSet may say for a moment that all is well whose pod has just gone, and the Node that there are units.
        parts.until_registered_after(life)
        allocatable(node, OURS, 200)
        pods.create(asks("tolerant", OURS, 60, tolerations=[TOLERATES]), asks("other", OURS, 20))
        pods.wait(READY, "tolerant")
        pods.wait("jsonpath={.status.conditions[0].reason}=Unschedulable", "other")
        assert "untolerated taint" in pods.get("other", ".status.conditions[0].message")
    finally:
        node.kubectl("taint", "node", NODE_NAME, f"{TAINT}-")
    pods.wait(READY, "other")
