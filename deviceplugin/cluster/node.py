"""What the cluster is told of this node: how much GPU memory it has, and what is not well; and what its label asks."""

from collections import deque
from collections.abc import Iterable, Mapping

from deviceplugin.config import Config
from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.contract.health import Health
from edgeshare.contract.names import CONFIG_DEFAULT, CONFIG_LABEL, GPU_MEMORY_MIB
from edgeshare.contract.quantity import whole_number
from edgeshare.kube.environment import in_pod, known_node_name, node_name
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import no_node
from edgeshare.kube.threaded import ask

COMPONENT = "edgeshare-deviceplugin"


class Node:
    """This node, at the API server."""

    def __init__(self, kube: Kube, name: str) -> None:
        self._kube = kube
        self._name = name

    async def config_name(self) -> str:
        """Which of the named configs the node's label asks for.

        Raises Unavailable where the API server cannot be asked, or has no such node.
        """
        node = await ask(self._kube.node, self._name)
        if node is None:
            raise Unavailable(no_node(self._name))
        labels: dict[str, str] = (node.get("metadata") or {}).get("labels") or {}
        return labels.get(CONFIG_LABEL) or CONFIG_DEFAULT

    async def warn(self, reason: str, message: str) -> None:
        """Writes an event about the node; raises Unavailable where that cannot be done."""
        await self._event(reason, message, warning=True)

    async def tell_memory(self, devices: Iterable[Device]) -> None:
        """Sees to it that the node's status says how much memory its healthy GPUs have: one number, because one unit
        a MiB would overrun the kubelet's 4 MiB message. What it says survives kubelets, but not the node's
        deletion.

        Raises Unavailable where the API server cannot be asked, or has no such node.
        """
        memory_mib = sum(device.memory_mib for device in devices if device.healthy)
        node = await ask(self._kube.node, self._name)
        status = (node or {}).get("status") or {}
        # Never one without the other: the kubelet makes allocatable of capacity anew, each time that it looks at them.
        # A node that never had a GPU says nothing, and needs not say 0.
        if any(_says(status.get(field)) != memory_mib for field in ("capacity", "allocatable")):
            told = {GPU_MEMORY_MIB: str(memory_mib)}
            await ask(self._kube.patch_node_status, self._name, {"status": {"capacity": told, "allocatable": told}})

    async def tell_health(self, changes: deque[tuple[Device, Health]]) -> None:
        """Writes an event for each device whose health changed, and takes it out; raises Unavailable where that cannot
        be done, and leaves it in."""
        while changes:
            device, health = changes[0]
            word = KINDS[device.accelerator].word
            reason = f"{word}Healthy" if health.healthy else f"{word}Unhealthy"
            await self._event(reason, f"{word} {device.id} is {health}", warning=not health.healthy)
            changes.popleft()

    async def _event(self, reason: str, message: str, warning: bool) -> None:
        # Its name for a uid, as in the kubelet's own events about it: `kubectl describe` looks for that.
        about = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": self._name}
        await ask(self._kube.event, COMPONENT, about, warning, reason, message)


def _says(resources: dict[str, str] | None) -> int | None:
    """None for what somebody else wrote there, and is no number."""
    try:
        return whole_number((resources or {}).get(GPU_MEMORY_MIB, "0"), GPU_MEMORY_MIB)
    except InvalidRequest:
        return None


def connect(config: Config, environment: Mapping[str, str], needs_name: bool = True) -> tuple[Kube | None, str]:
    """The API server, None where there is none, and this node's name. Raises InvalidRequest where there is one and a
    name that is needed is not known, Unavailable where there is no right to ask it."""
    if config.kubeconfig is None and not in_pod(environment):
        return None, node_name(config.node_name, environment)
    name = (known_node_name if needs_name else node_name)(config.node_name, environment)
    return Kube.reach(config.kubeconfig), name
