"""What the node tells of its GPUs and their shares."""

import json
import re
import subprocess
from collections.abc import Callable

import pytest

from simgpu.machine import Machine
from tests.kit.onenode.installed.release import HOST_FOLDERS
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT, Pods
from tests.kit.processes.waiting import until
from tests.kit.programs.binaries import GRPCURL, program

HALTED_XID = 62  # NVIDIA's for a micro-controller of the GPU that has halted
MIB = 1 << 20
STATUS_SOCKET = HOST_FOLDERS[0] / "status.sock"


@pytest.fixture(scope="module")
def grpcurl() -> Callable[..., str]:
    """What grpcurl prints when it asks the manager's status socket, with what reflection tells it. Built here, where
    no test's time is taken by that."""
    built = program(GRPCURL, "grpcurl")

    def ask(*words: str) -> str:
        command = [built, "-plaintext", "-unix", STATUS_SOCKET, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    return ask


def resources(node: Node) -> dict[str, dict[str, int]]:
    """What `kubectl describe node` shows of GPUs, under each title. (A kubelet goes on naming EdgeTPUs that there were
    once.)"""
    described = node.kubectl("describe", "node", NODE_NAME)
    shown = {}
    for title in ("Capacity", "Allocatable"):
        section = re.search(rf"^{title}:\n((?: .*\n)+)", described, re.MULTILINE)
        assert section, described
        told = dict(line.split(":") for line in section[1].split("\n") if line)
        shown[title] = {name.strip(): int(told[name]) for name in told if "edge/gpu-" in name}
    return shown


def test_describe_node_shows_the_units_and_the_memory(node: Node, edgeshare: Machine) -> None:
    memory_mib = sum(gpu.memory_bytes for gpu in edgeshare.gpus()) // MIB
    of_all = {"edge/gpu-percent": 200, "edge/gpu-memory-mib": memory_mib}
    # Units are told by the kubelet and memory by the plugin, each in its own time.
    until(lambda: resources(node) == {"Capacity": of_all, "Allocatable": of_all}, "they are shown")


def test_grpcurl_finds_the_services_and_asks_for_the_status(edgeshare: Machine, grpcurl: Callable[..., str]) -> None:
    services = grpcurl("list").split()
    assert {"edgeshare.v1.ShareStatus", "grpc.health.v1.Health"} <= set(services)
    assert json.loads(grpcurl("grpc.health.v1.Health/Check")) == {"status": "SERVING"}
    status = json.loads(grpcurl("edgeshare.v1.ShareStatus/GetNodeStatus"))
    assert [device["id"] for device in status["devices"]] == [gpu.uuid for gpu in edgeshare.gpus()]


def test_status_through_kubectl_names_the_pod_and_its_share(node: Node, pods: Pods) -> None:
    limits = {"edge/gpu-percent": 40, "edge/gpu-memory-mib": 1000}
    pods.start("shown", "--seconds", "600", limits=limits)
    pods.wait("condition=Ready", "shown")
    command = ("exec", "--namespace=edgeshare", "daemonset/edgeshare", "--", "edgeshare", "status")
    assert "default/shown/main" in node.kubectl(*command)

    def told() -> list[tuple[str, int, str]]:
        """Of those of pods before, the manager knows until they were compared."""
        found = [each["allocation"] for each in json.loads(node.kubectl(*command, "--json"))["allocations"]]
        return [(each["owner"]["pod"], each["requestPercent"], each["memoryMib"]) for each in found]

    until(lambda: told() == [("shown", 40, "1000")], "its share is told, and nobody else's")


def test_gpu_that_fails_is_told_and_not_given_out_until_it_is_reset(node: Node, edgeshare: Machine) -> None:
    first, second = edgeshare.gpus()
    edgeshare.inject_xid(second.index, HALTED_XID)
    try:
        node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=100", f"node/{NODE_NAME}", WAIT)
        memory = f"edge/gpu-memory-mib}}={first.memory_bytes // MIB}"
        node.kubectl("wait", f"--for=jsonpath={{.status.allocatable.{memory}", f"node/{NODE_NAME}", WAIT)
        node.kubectl("wait", f"--for=jsonpath={{.status.capacity.{memory}", f"node/{NODE_NAME}", WAIT)
        said = f"GPU {second.uuid} is not healthy: XID {HALTED_XID}"
        until(lambda: said in node.kubectl("describe", "node", NODE_NAME), "there is an event of the node")
    finally:
        edgeshare.reset(second.index)
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=200", f"node/{NODE_NAME}", WAIT)
