"""Pods that a test starts, and takes away again."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from onenode.errors import NodeError
from onenode.node import Node
from onenode.workload import EXAMPLE

WAIT = "--timeout=120s"  # a safety limit; a pod of a local image starts in two seconds
TEMPLATE: dict[str, Any] = next(yaml.safe_load_all(EXAMPLE.read_text()))


class Pods:
    """Pods in the namespace `default`, each with one container."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._names: list[str] = []

    def start(self, name: str, *args: str, limits: Mapping[str, int]) -> str:
        """Make a pod like the example's, which runs burn with these arguments, and return its name."""
        self._node.kubectl("create", "-f", "-", stdin=json.dumps(manifest(name, args, limits)))
        self._names.append(name)
        return name

    def wait(self, condition: str, *names: str) -> None:
        """Return when these pods fulfil a condition, as `kubectl wait --for` has it.

        Raises NodeError with their events when they do not.
        """
        pods = [f"pod/{name}" for name in names]
        try:
            self._node.kubectl("wait", f"--for={condition}", WAIT, *pods)
        except NodeError as error:
            raise NodeError(f"{error}\n{self._node.kubectl('describe', *pods)}") from error

    def get(self, name: str, path: str) -> str:
        """A field of a pod, by its JSONPath."""
        return self._node.kubectl("get", "pod", name, "-o", f"jsonpath={{{path}}}")

    def log(self, name: str) -> str:
        """What the pod's container wrote."""
        return self._node.kubectl("logs", name)

    def run(self, name: str, *command: str) -> str:
        """What a command in the pod's container prints."""
        return self._node.kubectl("exec", name, "--", *command)

    def gpu(self, name: str) -> str:
        """The UUID of the GPU that a running pod was given; of several, separated by commas."""
        return self.run(name, "printenv", "NVIDIA_VISIBLE_DEVICES").strip()

    def delete(self, *names: str) -> None:
        """Delete pods, and return when the kubelet has ended them."""
        self._node.kubectl("delete", WAIT, "pod", *names)
        self._names = [name for name in self._names if name not in names]

    def delete_all(self) -> None:
        """Delete all that were started here."""
        if self._names:
            self.delete(*self._names)


def manifest(name: str, args: Sequence[str], limits: Mapping[str, int]) -> dict[str, Any]:
    """The first pod of the example, with another name, other arguments and other limits."""
    pod = copy.deepcopy(TEMPLATE)
    container = pod["spec"]["containers"][0]
    pod["metadata"]["name"] = container["env"][0]["value"] = name
    container["args"] = list(args)
    container["resources"]["limits"] = dict(limits)
    return pod
