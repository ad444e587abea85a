"""The chart as it is shipped on the node, with a kube-scheduler of its own, and what that places."""

import json
import tempfile
from pathlib import Path

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.onenode.images import client_image
from tests.kit.onenode.installed.release import NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT, Manifest, container, pod
from tests.kit.processes.waiting import until
from tests.kit.programs.binaries import KUBERNETES, program

IMAGE = f"registry.k8s.io/kube-scheduler:v{KUBERNETES.version}"  # as the chart finds it out here
PROGRAM = "/usr/bin/kube-scheduler"
AS_SHIPPED: dict[str, object] = {"scheduler": {}}
SCHEDULER = "edgeshare"  # its name, as shipped
IN_NAMESPACE = f"--namespace={NAME}"
DEPLOYMENT = (IN_NAMESPACE, f"deployment/{NAME}-assigner")


def import_scheduler(node: Node) -> None:
    """Give the node kube-scheduler's image, of the API server's version."""
    if not node.has_image(IMAGE):
        with tempfile.TemporaryDirectory() as folder:
            files = {PROGRAM: program(KUBERNETES, "kube-scheduler")}
            node.import_image(client_image(Path(folder), IMAGE, files, [PROGRAM]))


def until_scheduling(node: Node) -> None:
    """Return when all its replicas are ready, and the API server sends it pods."""
    node.kubectl("rollout", "status", *DEPLOYMENT, WAIT)
    until(lambda: named_scheduler(node) == SCHEDULER, "pods are sent to it")


def until_gone(node: Node) -> None:
    """Return when its pods have ended, and the API server sends it none any more."""
    node.kubectl(
        "wait", "--for=delete", IN_NAMESPACE, "pods", f"--selector=app.kubernetes.io/name={NAME}-assigner", WAIT
    )
    # Of its policies, too, the API server learns by a watch: a pod that one still sends there would wait for ever.
    until(lambda: named_scheduler(node) == "default-scheduler", "no pod is sent to it any more")


def asks(name: str, percent: int) -> Manifest:
    """A pod as anybody would write it."""
    return pod(name, [container(name, "main", "--seconds", "600", limits={GPU_PERCENT: percent})])


def named_scheduler(node: Node) -> str:
    """The scheduler of a pod that would be made now."""
    words = ("create", "--dry-run=server", "--output=jsonpath={.spec.schedulerName}", "--filename=-")
    return node.kubectl(*words, stdin=json.dumps(asks("probe", 1)))
