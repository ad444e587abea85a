"""What cannot be granted or is set wrongly is refused with a reason, on real kubelets, and harms nobody else."""

import json
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from edgeshare.contract.names import GPU_MEMORY_MIB, GPU_PERCENT
from edgeshare.contract.units import MIB
from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import IN_NAMESPACE, Parts
from tests.kit.onenode.installed.release import GPUS, NAME
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.given import assert_all_agree
from tests.kit.onenode.pods.pods import WAIT, Pods, container, pod
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

pytestmark = pytest.mark.usefixtures("kubelet")

LONG = ("--seconds", "600")
READY = "condition=Ready"
FAILED = "jsonpath={.status.phase}=Failed"
POLICY = f"validatingadmissionpolicybinding/{NAME}-share-requests"
CONFIG = "deviceplugin.yaml"
ABSENT = 7  # the index of a GPU that the node has not


def is_refused(node: Node, units: int) -> bool:
    """Whether the API server refuses a pod that asks for so many units."""
    manifest = pod("tried", [container("tried", "main", limits={GPU_PERCENT: units})])
    try:
        node.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(manifest))
    except NodeError:
        return True
    return False


@pytest.fixture
def no_policy(node: Node) -> Iterator[None]:
    """The API server lets pods pass that ask for what cannot be."""
    for_it = ("patch", POLICY, "--type=merge")
    node.kubectl(*for_it, '--patch={"spec":{"validationActions":["Audit"]}}')
    until(lambda: not is_refused(node, 130), "the policy holds no more")
    yield
    node.kubectl(*for_it, '--patch={"spec":{"validationActions":["Deny"]}}')
    until(lambda: is_refused(node, 130), "the policy holds again")


@pytest.fixture
def config(node: Node, parts: Parts) -> Iterator[str]:
    """The plugin's configuration; at the end it is as it was."""
    data = json.loads(node.kubectl("get", "configmap", NAME, IN_NAMESPACE, "-o", "json"))["data"]
    yield data[CONFIG]
    configure(node, parts, data[CONFIG])


def configure(node: Node, parts: Parts, text: str) -> None:
    """Give the plugin another configuration, and return when its container sees it."""
    change = json.dumps({"data": {CONFIG: text}})
    node.kubectl("patch", "configmap", NAME, IN_NAMESPACE, "--type=merge", f"--patch={change}")

    def is_seen() -> bool:
        # The kubelet writes it when it looks at the pod next, which is at once when the pod changes.
        changed = f"edgeshare-test/looked-at={time.monotonic_ns()}"
        node.kubectl("annotate", "pods", "--all", IN_NAMESPACE, "--overwrite", changed)
        cat = ("cat", f"/etc/edgeshare/{CONFIG}")
        return node.kubectl("exec", IN_NAMESPACE, f"daemonset/{NAME}", "--container=device-plugin", "--", *cat) == text

    until(is_seen, "the plugin's container has its configuration", look_s=1)


def test_130_percent_is_refused_by_the_plugin_too(no_policy: None, pods: Pods) -> None:
    pods.start("too-much", *LONG, limits={GPU_PERCENT: 130})
    pods.wait(FAILED, "too-much")
    assert "130 percent cannot be granted: ask for 1 to 99" in pods.get("too-much", ".status.message")


def test_memory_over_the_device_fails_the_pod_with_the_figures(edgeshare: Machine, pods: Pods) -> None:
    whole_mib = edgeshare.gpus()[0].memory_bytes // MIB
    asked_mib = whole_mib + 1  # The node has as much, on its GPUs together.
    pods.start("too-large", *LONG, limits={GPU_PERCENT: 50, GPU_MEMORY_MIB: asked_mib})
    pods.wait(FAILED, "too-large")
    message = pods.get("too-large", ".status.message")
    assert f"no GPU has 50 units and {asked_mib} MiB free" in message
    assert all(f"{whole_mib} MiB of {gpu.uuid}" in message for gpu in edgeshare.gpus())


@pytest.mark.each_kubelet
def test_memory_over_the_device_fails_the_pod_where_just_as_many_units_are_left_too(
    edgeshare: Machine, pods: Pods
) -> None:
    holders = [pods.start(f"holder-{units}", *LONG, limits={GPU_PERCENT: units}) for units in (50, 100)]
    pods.wait(READY, *holders)
    asked_mib = edgeshare.gpus()[0].memory_bytes // MIB + 1
    pods.start("too-large", *LONG, limits={GPU_PERCENT: 50, GPU_MEMORY_MIB: asked_mib})
    pods.wait(FAILED, "too-large")
    assert f"no GPU has 50 units and {asked_mib} MiB free" in pods.get("too-large", ".status.message")
    assert_all_agree(*holders)


def test_a_config_that_names_a_device_that_is_not_there_is_told_and_the_others_are_shared(
    node: Node, edgeshare: Machine, parts: Parts, config: str, pods: Pods
) -> None:
    configure(node, parts, f"{config}exclude:\n- index: {ABSENT}\n")
    about = ("get", "events", "--field-selector=reason=ConfiguredDeviceMissing", "--all-namespaces")
    said = f"exclude names a device that is not there (index: {ABSENT})"
    until(lambda: said in node.kubectl(*about, "-o", "jsonpath={.items[*].message}"), "there is an event of the node")
    until(lambda: parts.figures().get("devices,gpu") == GPUS, "the others are shared")
    pods.start("shares", *LONG, limits={GPU_PERCENT: 100})
    pods.wait(READY, "shares")
    # Told by the kubelet in its own time.
    units = f"--for=jsonpath={{.status.allocatable.{GPU_PERCENT}}}={GPUS * 100}"
    node.kubectl("wait", units, f"node/{NODE_NAME}", WAIT)


def test_pods_admitted_at_once_each_get_units_of_their_own(pods: Pods) -> None:
    asked = {f"half-{number}": 50 for number in range(2)} | {f"quarter-{number}": 25 for number in range(4)}
    pods.create(*(pod(name, [container(name, "main", *LONG, limits={GPU_PERCENT: asked[name]})]) for name in asked))
    pods.wait(READY, *asked)
    given: Counter[str] = Counter()
    for name, units in asked.items():
        given[pods.gpu(name)] += units
    assert sorted(given.values()) == [100, 100]
    assert_all_agree(*asked)
