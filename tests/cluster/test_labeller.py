"""The labeller on a real node, with its chart's own service account and policies: its labels come, change and go."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simgpu.machine import Machine
from simgpu.trees import JETSONS, add_jetson, write
from tests.kit.onenode.images import PROJECT
from tests.kit.onenode.installed.labels import labels, ours
from tests.kit.onenode.installed.release import NAME, TIMEOUT
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import WAIT
from tests.kit.processes.command import run
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

ACCOUNT = f"{NAME}-labeller"
IN_NAMESPACE = f"--namespace={NAME}"
TREE = Path("/dev/shm/edgeshare-test-tree")
COMPATIBLE = TREE / "sys/firmware/devicetree/base/compatible"
SUCCEEDED, FAILED = (f"--for=jsonpath={{.status.phase}}={phase}" for phase in ("Succeeded", "Failed"))
RSS_MIB_MAX = 60

NANO = {"gpu.model": "Jetson-Nano", "beta.devicetree.org/nvidia-jetson-nano": "1"}
TX2 = {"gpu.model": "Jetson-TX2", "beta.devicetree.org/nvidia-tegra186": "1"}


def in_labeller(node: Node, *command: str) -> str:
    """What a command in the container of the chart's labeller prints."""
    return node.kubectl("exec", IN_NAMESPACE, f"daemonset/{ACCOUNT}", "--", *command)


class Runs:
    """Labellers of a simulated tree, in pods like the chart's."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._names: list[str] = []
        path = "jsonpath={.spec.template.spec.containers[0].image}"
        self._image = node.kubectl("get", IN_NAMESPACE, f"daemonset/{ACCOUNT}", "-o", path)

    def start(self, name: str, *options: str, account: str = ACCOUNT) -> str:
        fields = {"NODE_NAME": "spec.nodeName", "POD_NAMESPACE": "metadata.namespace"}
        container = {
            "name": "main",
            "image": self._image,
            "imagePullPolicy": "Never",
            "args": ["labeller", "--root", "/tree", *options],
            "env": [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields.items()],
            "securityContext": {"runAsUser": 65532, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
            "volumeMounts": [{"name": "tree", "mountPath": "/tree", "readOnly": True}],
        }
        spec = {
            "serviceAccountName": account,
            "automountServiceAccountToken": True,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [container],
            "volumes": [{"name": "tree", "hostPath": {"path": str(TREE), "type": "Directory"}}],
        }
        pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
        pod["metadata"] = {"name": name, "namespace": NAME}
        self._node.kubectl("create", "-f", "-", stdin=json.dumps(pod))
        self._names.append(name)
        return name

    def once(self, name: str, *options: str, ends: str = SUCCEEDED, account: str = ACCOUNT) -> str:
        """Runs one to its end; what it wrote."""
        self.start(name, *options, account=account)
        try:
            self._node.kubectl("wait", IN_NAMESPACE, ends, WAIT, f"pod/{name}")
        except NodeError as error:
            raise NodeError(f"{error}\n{self.log(name)}") from error
        return self.log(name)

    def log(self, name: str) -> str:
        return self._node.kubectl("logs", IN_NAMESPACE, name)

    def log_on_disk(self, name: str) -> str:
        """The same without the API server."""
        found = self._node.layout.pod_logs.glob(f"{NAME}_{name}_*/main/*.log")
        return "".join(path.read_text() for path in found)

    def delete_all(self) -> None:
        if self._names:
            self._node.kubectl("delete", IN_NAMESPACE, WAIT, "pod", *self._names)


def become(board: str) -> None:
    """The simulated tree is another Jetson's."""
    # At once: a file that is being written is worth a warning.
    fresh = COMPATIBLE.with_name("fresh")
    write(fresh, "".join(f"{name}\0" for name in JETSONS[board].compatible))
    fresh.replace(COMPATIBLE)


def remove_labels(node: Node) -> None:
    """Takes away those of all labellers, from here: a pod for that would take three seconds."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
        json.dump({"kubeconfig": str(node.layout.kubeconfig), "node_name": NODE_NAME}, config)
        config.flush()
        run([sys.executable, "-m", "edgeshare.cli", "labeller", "--remove", "--config", config.name], cwd=PROJECT)


@pytest.fixture(scope="module")
def alone(node: Node, edgeshare: Machine) -> Iterator[None]:
    """The chart's own labeller has left the node: it has the same field manager as those of the tests."""

    def select(labels_of_nodes: dict[str, str | None]) -> None:
        patch = {"spec": {"template": {"spec": {"nodeSelector": labels_of_nodes}}}}
        words = ("patch", IN_NAMESPACE, f"daemonset/{ACCOUNT}", "--type=merge", f"--patch={json.dumps(patch)}")
        node.kubectl(*words)

    select({"edge/nowhere": "true"})
    pods = f"--selector=app.kubernetes.io/name={ACCOUNT}"
    node.kubectl("wait", IN_NAMESPACE, "pod", pods, "--for=delete", TIMEOUT)
    remove_labels(node)
    yield
    select({"edge/nowhere": None})
    node.kubectl("rollout", "status", IN_NAMESPACE, f"daemonset/{ACCOUNT}", TIMEOUT)


@pytest.fixture
def runs(node: Node, alone: None) -> Iterator[Runs]:
    """Labellers of a Jetson Nano; there are no other labels of the labeller's, and none at the end."""
    node.own(TREE)
    add_jetson(TREE, JETSONS["nano"])
    started = Runs(node)
    try:
        yield started
    finally:
        started.delete_all()
        remove_labels(node)
        shutil.rmtree(TREE)


def test_the_charts_labeller_labels_its_node_as_an_ordinary_user_in_little_memory(
    node: Node, edgeshare: Machine
) -> None:
    node.kubectl("rollout", "status", IN_NAMESPACE, f"daemonset/{ACCOUNT}", TIMEOUT)
    config = ("--config", "/etc/edgeshare/labeller.yaml")
    found = json.loads(in_labeller(node, "edgeshare", "labeller", *config, "--json"))["labels"]
    until(lambda: found.items() <= labels(node).items() and ours(node) == found.keys(), f"the node is labelled {found}")
    # A Node that is made anew has none.
    node.kubectl("label", "node", NODE_NAME, *(f"{name}-" for name in found))
    until(lambda: ours(node) == found.keys(), "the node has its labels again")
    assert in_labeller(node, "id", "-u").strip() == "65532"
    status = dict(line.split(":", 1) for line in in_labeller(node, "cat", "/proc/1/status").splitlines())
    assert int(status["VmRSS"].split()[0]) / 1024 <= RSS_MIB_MAX
    path = "jsonpath={.items[*].status.containerStatuses[*].restartCount}"
    assert node.kubectl("get", IN_NAMESPACE, "pods", f"--selector=app.kubernetes.io/name={ACCOUNT}", "-o", path) == "0"


def test_labels_come_change_and_go_with_what_is_there(node: Node, runs: Runs) -> None:
    before = labels(node)
    name = runs.start("daemon", "--interval", "1")
    until(lambda: NANO.items() <= labels(node).items(), "the node is labelled a Jetson Nano")
    assert NANO.keys() <= ours(node)
    become("tx2")
    until(lambda: TX2.items() <= labels(node).items(), "the node is labelled a TX2")
    assert "beta.devicetree.org/nvidia-jetson-nano" not in labels(node)
    # At once, too.
    (TREE / "sys").rename(TREE / "gone")
    until(lambda: labels(node) == before, "a machine with nothing has no labels")
    assert ours(node) == set()
    assert "WARNING" not in runs.log(name)


def test_another_owners_label_is_left_and_named_and_removal_leaves_it_too(node: Node, runs: Runs) -> None:
    node.kubectl("label", "node", NODE_NAME, "gpu.model=mine")
    try:
        before = labels(node)
        said = runs.once("beside", ends=FAILED)
        assert "label gpu.model=mine was set by 'kubectl-label' and stays; ours would be 'Jetson-Nano'" in said
        assert labels(node) == {**labels(node), **NANO, "gpu.model": "mine"}
        # With another configuration, on a machine that is another by now.
        become("tx2")
        assert f"{NODE_NAME}: -beta.devicetree.org/nvidia-jetson-nano" in runs.once("remove", "--remove", "-n", "x")
        assert labels(node) == before
    finally:
        node.kubectl("label", "node", NODE_NAME, "gpu.model-")


def test_account_without_the_right_is_told_so_and_labels_stay(node: Node, runs: Runs) -> None:
    runs.once("first")
    before = labels(node)
    become("tx2")
    said = runs.once("stranger", ends=FAILED, account="default")
    assert said.startswith(f"edgeshare: the API server refuses GET /api/v1/nodes/{NODE_NAME}: 403 ")
    assert f'User "system:serviceaccount:{NAME}:default" cannot get resource "nodes"' in said
    assert len(said.splitlines()) == 1
    assert labels(node) == before


def test_while_the_api_server_is_away_it_waits_and_then_goes_on(node: Node, runs: Runs) -> None:
    name = runs.start("patient", "--interval", "1")
    until(lambda: NANO.items() <= labels(node).items(), "the node is labelled a Jetson Nano")
    with node.api_server_hung():
        become("tx2")
        until(lambda: "the labels stay as they are" in runs.log_on_disk(name), "it says that it cannot ask")
    until(lambda: TX2.items() <= labels(node).items(), "the node is labelled a TX2")
    until(lambda: "all that went wrong is over" in runs.log(name), "it says that this is over")
    assert node.kubectl("get", IN_NAMESPACE, "pod", name, "-o", "jsonpath={.status.phase}") == "Running"
