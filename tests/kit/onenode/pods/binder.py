"""The cluster part, played by a test: it binds pods that no scheduler looks at, with their assignment."""

from collections.abc import Sequence

from kubernetes import client, config

from edgeshare.contract.assignment import write_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import GPU_ASSIGNMENT
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import Manifest
from tests.kit.processes.errors import NodeError

SCHEDULER = "the-test"
CREATED = 201
JSON = {"Accept": "application/json", "Content-Type": "application/json"}


class Binder:
    """Over one connection: between two bindings are milliseconds, where a kubectl for each takes a hundred."""

    def __init__(self, node: Node) -> None:
        settings = client.Configuration()
        config.load_kube_config(str(node.layout.kubeconfig), client_configuration=settings)  # type: ignore[no-untyped-call]
        self._api = client.ApiClient(settings)

    def bind(self, pod: str, devices: Sequence[str]) -> None:
        """Binds a pod to the node, its container `main` to these devices. Raises NodeError."""
        annotations = {GPU_ASSIGNMENT: write_assignment({Accelerator.GPU: {"main": tuple(devices)}})}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": "default", "annotations": annotations},
            "target": {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME},
        }
        path = f"/api/v1/namespaces/default/pods/{pod}/binding"
        request = self._api.param_serialize(method="POST", resource_path=path, header_params=JSON, body=binding)
        answer = self._api.call_api(*request)
        said = answer.read()  # type: ignore[no-untyped-call]
        if answer.status != CREATED:
            raise NodeError(f"pod {pod} cannot be bound: {answer.status} {said.decode(errors='replace')[:200]}")


def left_to_binder(pod: Manifest) -> Manifest:
    """The pod, such that no scheduler looks at it."""
    return {**pod, "spec": {**pod["spec"], "schedulerName": SCHEDULER}}
