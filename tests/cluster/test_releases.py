"""Helm's ways with a release on the node, under programs that share a GPU: another version, back again, gone, and there
once more."""

import json
from collections.abc import Callable, Iterator

import pytest

from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from simgpu.machine import Machine
from tests.kit.manager.busy import assert_ranked
from tests.kit.onenode.installed.labels import labels, ours
from tests.kit.onenode.installed.release import GPUS, NAME, OUTSIDE, TIMEOUT, helm, install, until_ready, upgrade
from tests.kit.onenode.installed.scheduler import (
    AS_SHIPPED,
    SCHEDULER,
    asks,
    import_scheduler,
    until_gone,
    until_scheduling,
)
from tests.kit.onenode.installed.workload import SHARES, example_containers
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import Together
from tests.kit.onenode.pods.given import assert_all_agree, clients, listed
from tests.kit.onenode.pods.pods import WAIT, Pods
from tests.kit.onenode.watches.kubectl_watch import KubectlWatch
from tests.kit.processes.waiting import until

# A node's new pod is there before the old one ends.
SURGE = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}
# A change that makes the pods anew, those of the scheduler, too.
ANOTHER = {
    "shareManager": {"resources": {"limits": {"memory": "255Mi"}}},
    "scheduler": {"percentageOfNodesToScore": 50},
}
PODS = ("pods", f"--namespace={NAME}", f"--selector=app.kubernetes.io/name={NAME}")
SEEN = "{.metadata.name},{.metadata.deletionTimestamp},{.status.conditions[?(@.type=='Ready')].status}{'\\n'}"
OF_CLUSTER = ("get", ",".join(OUTSIDE), "--all-namespaces", "--output=name")


@pytest.fixture
def scheduled(node: Node) -> Iterator[None]:
    """The node can run the release as it is shipped. In the end it is as other tests have it, whatever became of it."""
    import_scheduler(node)
    yield
    install(node)
    until_gone(node)


def pod_names(node: Node) -> list[str]:
    """The release's pods on the node, those that end among them: a watch tells of them, too."""
    found = json.loads(node.kubectl("get", *PODS, "--output=json"))["items"]
    return [each["metadata"]["name"] for each in found]


def replaced(node: Node, change: Callable[[], object]) -> list[str]:
    """In which order the API server told of the release's old pod and of its new one that they are ready, and end."""
    told: list[str] = []

    def take(line: str) -> None:
        name, ends, ready = line.split(",")
        for what, is_so in (("ready", ready == "True" and not ends), ("ends", bool(ends))):
            if is_so and f"{name} {what}" not in told:
                told.append(f"{name} {what}")

    until(lambda: len(pod_names(node)) == 1, "the pod before has gone")
    (before,) = pod_names(node)
    with KubectlWatch(node, *PODS, template=SEEN, line=take):
        until(lambda: f"{before} ready" in told, "the watch tells of the old pod")
        change()
        until_ready(node, GPUS)
        until(lambda: f"{before} ends" in told and len(told) > 2, "the watch tells of the new pod")
    until(lambda: before not in pod_names(node), "the old pod has gone")
    (after,) = pod_names(node)
    return [each.replace(before, "old").replace(after, "new") for each in told]


def assert_places(node: Node, pods: Pods) -> None:
    """A pod that names no scheduler is placed by the release's own, and has its share."""
    until_scheduling(node)
    pods.create(asks("placed", 10))
    pods.wait("condition=Ready", "placed")
    assert pods.get("placed", ".spec.schedulerName") == SCHEDULER
    assert ("placed", "main") in listed()
    pods.delete("placed")


def test_surge_upgrade_and_the_way_back_leave_programs_their_shares(
    node: Node, edgeshare: Machine, example: None, scheduled: None, pods: Pods
) -> None:
    upgrade(node, more={**AS_SHIPPED, **SURGE})
    until_ready(node, GPUS)
    containers, held = example_containers(node), listed()
    for change in (
        lambda: upgrade(node, more={**AS_SHIPPED, **SURGE, **ANOTHER}),
        lambda: helm(node, "rollback", NAME),
    ):
        assert replaced(node, change) == ["old ready", "new ready", "old ends"]
        until(lambda: clients() == dict.fromkeys(SHARES, 1), "the pods' programs have joined the new manager")
        assert example_containers(node) == containers
        assert_places(node, pods)
        until(lambda: listed() == held, "the pod that was placed has gone")
        assert_all_agree(*SHARES)
    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))


def test_uninstalled_nothing_of_it_is_in_the_cluster_and_installed_again_programs_have_their_shares(
    node: Node, edgeshare: Machine, example: None, scheduled: None, pods: Pods
) -> None:
    upgrade(node, more={**AS_SHIPPED, "crds": {"keep": False}})
    until_ready(node, GPUS)
    until_scheduling(node)
    containers, held = example_containers(node), listed()
    node.kubectl("label", "node", NODE_NAME, "somebody=else")
    assert ours(node)

    helm(node, "uninstall", NAME, TIMEOUT)

    node.kubectl("wait", "--for=delete", *PODS, WAIT)
    until_gone(node)
    # A kind goes once the API server has taken its objects away.
    until(lambda: not any(map(is_ours, node.kubectl(*OF_CLUSTER).split())), "nothing of it is in the cluster")
    assert ours(node) == set()
    assert labels(node)["somebody"] == "else"
    status = json.loads(node.kubectl("get", f"node/{NODE_NAME}", "-o", "jsonpath={.status}"))
    assert not any("edge/gpu-memory-mib" in status[field] for field in ("capacity", "allocatable"))
    # The kubelet's, which says so of a plugin that has gone.
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=0", f"node/{NODE_NAME}", WAIT)
    assert example_containers(node) == containers

    install(node, more=AS_SHIPPED)

    assert_places(node, pods)
    until(lambda: clients() == dict.fromkeys(SHARES, 1), "the pods' programs have joined the new manager")
    assert example_containers(node) == containers
    until(lambda: listed() == held, "the pod that was placed has gone")
    assert_all_agree(*SHARES)
    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))
    node.kubectl("wait", "--for=create", f"{ACCELERATOR_NODES_CRD}/{NODE_NAME}", WAIT)
    node.kubectl("label", "node", NODE_NAME, "somebody-")


def is_ours(name: str) -> bool:
    """Whether an object of the cluster's is the release's, by its name."""
    return NAME in name or ACCELERATOR_NODES_CRD in name
