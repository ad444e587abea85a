"""What the node tells of its GPUs and their shares."""

import json
import re
import subprocess

from onenode.binaries import GRPCURL, program
from onenode.layout import NODE_NAME
from onenode.node import Node
from onenode.pods import Pods
from onenode.release import HOST_FOLDERS

from simgpu.machine import Machine

STATUS_SOCKET = HOST_FOLDERS[0] / "status.sock"


def grpcurl(*words: str) -> str:
    """What grpcurl prints when it asks the manager's status socket, with what reflection tells it."""
    command = [program(GRPCURL, "grpcurl"), "-plaintext", "-unix", STATUS_SOCKET, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_describe_node_shows_the_units_and_the_memory(node: Node, edgeshare: Machine) -> None:
    described = node.kubectl("describe", "node", NODE_NAME)
    memory_mib = sum(gpu.memory_bytes for gpu in edgeshare.gpus()) >> 20
    for title in ("Capacity", "Allocatable"):
        section = re.search(rf"^{title}:\n((?: .*\n)+)", described, re.MULTILINE)
        assert section, described
        told = dict(line.split(":") for line in section[1].split("\n") if line)
        assert {name.strip(): int(told[name]) for name in told if "edge/" in name} == {
            "edge/gpu-percent": 200,
            "edge/gpu-memory-mib": memory_mib,
        }


def test_grpcurl_finds_the_services_and_asks_for_the_status(edgeshare: Machine) -> None:
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
    allocations = json.loads(node.kubectl(*command, "--json"))["allocations"]
    told = [each["allocation"] for each in allocations]
    assert [(each["owner"]["pod"], each["requestPercent"], each["memoryMib"]) for each in told] == [
        ("shown", 40, "1000")
    ]
