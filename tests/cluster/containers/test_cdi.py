"""Devices by the Container Device Interface: containerd does what the plugin's spec says."""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simgpu.machine import Machine
from tests.kit.onenode.installed.release import CHART, NAME, TIMEOUT, helm
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import wait_until_executing
from tests.kit.onenode.pods.pods import Pods
from tests.kit.processes.command import run
from tests.kit.programs.binaries import CDI, program

CDI_DIR = Path("/run/cdi")  # as /var/run/cdi: one of the two folders in which containerd looks
SPEC = CDI_DIR / "edge-gpu.json"
# The first simulated GPU's. It is the number of a device that containers may not open unless they are given it, and
# that does nothing when it is opened: /dev/fuse (Linux, admin-guide/devices.txt).
GPU_NODE = Path("/dev/nvidia0")
NUMBER = os.makedev(10, 229)
READY = "condition=Ready"
SUCCEEDED = "jsonpath={.status.phase}=Succeeded"
LONG = ("--seconds", "600")
HOOK = "libedgeshare_cuda.so"
FIRST_WITH_CDI = (1, 7, 2)  # that takes the kubelet's names: containerd, pull request 8519


def upgrade(node: Node, values: dict[str, Any]) -> None:
    """Install with other values, and return when the plugin has registered."""
    helm(node, "upgrade", NAME, CHART, "--values=-", stdin=json.dumps(values))
    node.kubectl("rollout", "status", f"--namespace={NAME}", f"daemonset/{NAME}", TIMEOUT)


@pytest.fixture(scope="module")
def gpu_node() -> Iterator[Path]:
    """The device node of the first GPU, which a simulated one has not."""
    if GPU_NODE.exists():
        pytest.skip(f"this machine has a {GPU_NODE} of its own")
    os.mknod(GPU_NODE, stat.S_IFCHR | 0o666, NUMBER)
    GPU_NODE.chmod(0o666)
    yield GPU_NODE
    GPU_NODE.unlink()


@pytest.fixture(scope="module")
def knows_cdi(node: Node) -> None:
    """Skips where this node's containerd reads no CDI specs."""
    runs = node.kubectl(
        "get", f"node/{NODE_NAME}", "--output=jsonpath={.status.nodeInfo.containerRuntimeVersion}"
    ).strip()
    version = re.match(r"containerd://(\d+)\.(\d+)\.(\d+)", runs)
    assert version, runs
    if tuple(map(int, version.groups())) < FIRST_WITH_CDI:
        pytest.skip(f"this node runs {runs}, which reads no CDI specs: the pinned one could not be built")


@pytest.fixture(scope="module")
def by_cdi(node: Node, knows_cdi: None, edgeshare: Machine, gpu_node: Path) -> Iterator[Machine]:
    """edgeshare, with a plugin that names devices to CDI and sees the node."""
    node.own(CDI_DIR)
    before = json.loads(helm(node, "get", "values", NAME, "--output=json"))
    visible = {"name": "gpu-node", "hostPath": {"path": str(gpu_node), "type": "CharDevice"}}
    values = {
        **before,
        "devicePlugin": {"config": {**before["devicePlugin"]["config"], "injection": {"devices": "cdi"}}},
        "extraVolumes": [*before["extraVolumes"], visible],
        "extraVolumeMounts": [*before["extraVolumeMounts"], {"name": "gpu-node", "mountPath": str(gpu_node)}],
    }
    upgrade(node, values)
    yield edgeshare
    upgrade(node, before)
    # The plugin that goes may have seen the change.
    SPEC.unlink(missing_ok=True)


def one_on_each_gpu(by_cdi: Machine, pods: Pods) -> list[str]:
    """Start a pod on each GPU, and return their names in the order of the GPUs."""
    names = [pods.start(f"large-{number}", *LONG, limits={"edge/gpu-percent": 60}) for number in (1, 2)]
    pods.wait(READY, *names)
    by_gpu = {pods.gpu(name): name for name in names}
    return [by_gpu[gpu.uuid] for gpu in by_cdi.gpus()]


@pytest.fixture(scope="module")
def validate() -> Path:
    """CDI's own program for that. Built here, where no test's time is taken by that."""
    return program(CDI, "validate")


def test_spec_is_valid_by_cdis_own_schema(by_cdi: Machine, validate: Path) -> None:
    assert f"{SPEC}: document is valid." in run([validate, SPEC])
    assert {device["name"] for device in json.loads(SPEC.read_text())["devices"]} == {gpu.uuid for gpu in by_cdi.gpus()}


def test_container_has_the_nodes_and_the_variable_of_its_device_alone(by_cdi: Machine, pods: Pods) -> None:
    first, second = one_on_each_gpu(by_cdi, pods)
    uuids = [gpu.uuid for gpu in by_cdi.gpus()]
    for index, name in enumerate((first, second)):
        seen = dict(line.split("=", 1) for line in pods.run(name, "env").splitlines())
        told = {key: value for key, value in seen.items() if key.startswith(("EDGESHARE_GPU", "NVIDIA"))}
        assert told == {f"EDGESHARE_GPU_{index}": uuids[index], "NVIDIA_VISIBLE_DEVICES": uuids[index]}
    kind_and_number = pods.run(first, "stat", "--format=%F %t:%T", str(GPU_NODE)).strip()
    assert kind_and_number == f"character special file {os.major(NUMBER):x}:{os.minor(NUMBER):x}"
    # The node is one thing, the cgroup's leave to open it another.
    pods.run(first, "sh", "-c", f": <>{GPU_NODE}")
    assert str(GPU_NODE) not in pods.run(second, "find", "/dev", "-name", "nvidia*").splitlines()


def test_pods_by_cdi_share_and_have_the_hook(by_cdi: Machine, pods: Pods) -> None:
    pods.start("part", *LONG, limits={"edge/gpu-percent": 50})
    pods.start("whole", *LONG, limits={"edge/gpu-percent": 100})
    pods.wait(READY, "part", "whole")
    wait_until_executing(by_cdi, "part", "whole")
    assert HOOK in pods.run("part", "cat", "/proc/1/maps")
    assert HOOK not in pods.run("whole", "cat", "/proc/1/maps")


def test_container_starts_after_the_spec_was_lost(by_cdi: Machine, pods: Pods) -> None:
    SPEC.unlink()
    pods.start("again", "--seconds", "0.1", limits={"edge/gpu-percent": 50})
    pods.wait(SUCCEEDED, "again")
    assert {device["name"] for device in json.loads(SPEC.read_text())["devices"]} == {gpu.uuid for gpu in by_cdi.gpus()}
