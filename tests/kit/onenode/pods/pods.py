"""Pods that a test starts, and takes away again."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tests.kit.onenode.installed.workload import EXAMPLE
from tests.kit.onenode.node import Node
from tests.kit.processes.errors import NodeError

WAIT = "--timeout=120s"  # a safety limit; a pod of a local image starts in two seconds
Manifest = dict[str, Any]
TEMPLATE: Manifest = next(yaml.safe_load_all(EXAMPLE.read_text()))


class Pods:
    """Pods in the namespace `default`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._names: list[str] = []

    def start(self, name: str, *args: str, limits: Mapping[str, int], restart: str = "Never") -> str:
        """Make a pod like the example's, which runs burn with these arguments, and return its name."""
        self.create(pod(name, [container(name, "main", *args, limits=limits)], restart=restart))
        return name

    def create(self, *manifests: Manifest) -> None:
        """Make pods, all with one call."""
        together = {"apiVersion": "v1", "kind": "List", "items": manifests}
        self._node.kubectl("create", "-f", "-", stdin=json.dumps(together))
        self._names += [manifest["metadata"]["name"] for manifest in manifests]

    def wait(self, condition: str, *names: str) -> None:
        """Return when these pods fulfil a condition, as `kubectl wait --for` has it.

        Raises NodeError with their events when they do not.
        """
        pods = [f"pod/{name}" for name in names]
        try:
            self._node.kubectl("wait", f"--for={condition}", WAIT, *pods)
        except NodeError as error:
            raise NodeError(f"{error}\n{self._node.kubectl('describe', *pods)}") from error

    def wait_until_read(self) -> None:
        """Return when a kubelet that was just started has read which pods there are: when a new one, without a share,
        has run. What it reads at first it admits beside the units of pods that ended before it started."""
        self.create(pod("plain", [container("plain", "main", "--seconds", "0.2", limits={})]))
        self.wait("jsonpath={.status.phase}=Succeeded", "plain")
        self.delete("plain")

    def get(self, name: str, path: str) -> str:
        """A field of a pod, by its JSONPath."""
        return self._node.kubectl("get", "pod", name, "-o", f"jsonpath={{{path}}}")

    def log(self, name: str) -> str:
        """What the pod's container wrote."""
        return self._node.kubectl("logs", name)

    def run(self, name: str, *command: str, container: str = "main") -> str:
        """What a command in a container of the pod prints."""
        return self._node.kubectl("exec", name, f"--container={container}", "--", *command)

    def gpu(self, name: str, container: str = "main") -> str:
        """The UUID of the GPU that a running container was given; of several, separated by commas."""
        return self.run(name, "printenv", "NVIDIA_VISIBLE_DEVICES", container=container).strip()

    def container(self, name: str, container: str = "main", field: str = ".containerID") -> str:
        """What a pod's status says of one of its containers: its id, if nothing else is asked for."""
        of = f'?(@.name=="{container}")'
        return self.get(name, f".status.containerStatuses[{of}]{field}") or self.get(
            name, f".status.initContainerStatuses[{of}]{field}"
        )

    def delete(self, *names: str) -> None:
        """Delete pods, and return when the kubelet has ended them."""
        self._node.kubectl("delete", WAIT, "pod", *names)
        self.forget(*names)

    def delete_by_force(self, *names: str) -> None:
        """Delete pods from the API server alone, as one does when a node is gone; the kubelet may still run them."""
        self._node.kubectl("delete", "--force", "--grace-period=0", "pod", *names)
        self.forget(*names)

    def forget(self, *names: str) -> None:
        """These are not to be deleted at the end."""
        self._names = [name for name in self._names if name not in names]

    def delete_all(self) -> None:
        """Delete all that were started here."""
        if self._names:
            self.delete(*self._names)


def pod(
    name: str,
    containers: Sequence[Manifest],
    *,
    init: Sequence[Manifest] = (),
    restart: str = "Never",
    grace_s: int = 1,
) -> Manifest:
    """The first pod of the example, with another name and other containers."""
    made = copy.deepcopy(TEMPLATE)
    made["metadata"]["name"] = name
    made["spec"] |= {
        "containers": list(containers),
        "initContainers": list(init),
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": grace_s,
    }
    return made


def container(pod_name: str, name: str, *args: str, limits: Mapping[str, int], **fields: object) -> Manifest:
    """Its container, with another name, other arguments, limits and fields. The simulated GPUs know its processes by
    the pod's name; those of any but `main` by both names, with a slash between."""
    made = copy.deepcopy(TEMPLATE["spec"]["containers"][0])
    made["name"] = name
    made["env"][0]["value"] = pod_name if name == "main" else f"{pod_name}/{name}"
    made["args"] = list(args)
    made["resources"]["limits"] = dict(limits)
    return {**made, **fields}
