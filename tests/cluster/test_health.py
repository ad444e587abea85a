"""A device that fails, as users of a real Kubernetes see it."""

from collections import Counter
from collections.abc import Iterator

import pytest

from edgeshare.contract.units import MIB
from simgpu.machine import Machine
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT, Pods
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

READY = "condition=Ready"
LONG = ("--seconds", "600")
UNITS = "edge/gpu-percent"
NODE = f"/api/v1/nodes/{NODE_NAME}"


@pytest.fixture
def sound(edgeshare: Machine) -> Iterator[Machine]:
    """The machine, whose device files are all there again at the end."""
    yield edgeshare
    for gpu in edgeshare.gpus():
        edgeshare.restore_file(gpu.index)


def told(node: Node) -> tuple[int, int]:
    """Units of the node: its capacity, and what can be given out. One that was made anew has none at first."""
    status = node.told(NODE)["status"]
    return int(status["capacity"].get(UNITS, 0)), int(status["allocatable"].get(UNITS, 0))


def units_of(node: Node, name: str) -> dict[str, list[str]]:
    """Health → ids of the units of a pod that have it, as the pod's status says."""
    (status,) = node.told(f"/api/v1/namespaces/default/pods/{name}")["status"]["containerStatuses"]
    found: dict[str, list[str]] = {}
    for resource in status.get("allocatedResourcesStatus", ()):
        assert resource["name"] == UNITS
        for unit in resource["resources"]:
            found.setdefault(unit["health"], []).append(unit["resourceID"])
    return found


def events(node: Node, reason: str, gpu: str) -> list[str]:
    """Messages of the node's events of this reason about this GPU."""
    found = node.told(f"/api/v1/events?fieldSelector=reason%3D{reason},involvedObject.kind%3DNode")["items"]
    return [event["message"] for event in found if gpu in event["message"]]


def test_a_running_pods_status_says_how_its_units_are(node: Node, sound: Machine, pods: Pods) -> None:
    pods.start("lives", *LONG, limits={UNITS: 30})
    pods.wait(READY, "lives")
    uuid = pods.gpu("lives")
    index = next(gpu.index for gpu in sound.gpus() if gpu.uuid == uuid)
    container = pods.get("lives", ".status.containerStatuses[0].containerID")
    until(lambda: len(units_of(node, "lives").get("Healthy", ())) == 30, "all units of the pod are told")
    # What earlier tests did to this GPU; the API server lists events by name, not by time.
    failed, healed = events(node, "GPUUnhealthy", uuid), events(node, "GPUHealthy", uuid)

    sound.remove_file(index)
    until(lambda: told(node) == (200, 100), "a GPU's units are not given out, and are still there")
    until(lambda: len(units_of(node, "lives").get("Unhealthy", ())) == 30, "the pod's status says so")
    until(lambda: events(node, "GPUUnhealthy", uuid) != failed, "there is an event of the node")
    (event,) = Counter(events(node, "GPUUnhealthy", uuid)) - Counter(failed)
    assert f"/dev/nvidia{index} is gone" in event
    pods.start("goes-elsewhere", *LONG, limits={UNITS: 60})
    pods.wait(READY, "goes-elsewhere")
    assert pods.gpu("goes-elsewhere") != uuid

    sound.restore_file(index)
    until(lambda: told(node) == (200, 200), "the units can be given out again")
    until(lambda: len(units_of(node, "lives").get("Healthy", ())) == 30, "the pod's status says so")
    until(lambda: len(events(node, "GPUHealthy", uuid)) == len(healed) + 1, "there is an event of the node")
    assert pods.get("lives", ".status.containerStatuses[0].containerID") == container


def memory(node: Node) -> list[str]:
    """The GPUs' memory that the node says: its capacity, and what can be given out; empty where it does not say."""
    try:
        status = node.told(NODE)["status"]
    except NodeError:  # It was deleted, and the kubelet has not made it anew yet.
        return []
    return [status.get(field, {}).get("edge/gpu-memory-mib", "") for field in ("capacity", "allocatable")]


def test_a_node_object_that_is_made_anew_says_its_memory_again(node: Node, sound: Machine) -> None:
    until(lambda: told(node) == (200, 200), "all units can be given out, after what another test did")
    # The plugin tells of it, in a time of its own.
    before = [str(sum(gpu.memory_bytes for gpu in sound.gpus()) // MIB)] * 2
    until(lambda: memory(node) == before, "so can all memory")
    node.kubectl("delete", "node", NODE_NAME)
    # Only one that starts makes it; long before the cluster would take the node's pods away.
    node.restart_kubelet()
    until(lambda: memory(node) == before, "the node says its GPUs' memory")
    until(lambda: told(node) == (200, 200), "the node's units can be given out")
    node.kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", WAIT)
