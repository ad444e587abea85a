"""What pods ask for, told to the API server, and the devices that they get for it."""

import json

from tests.kit.apiserver.scripted_api_server import ApiServer
from tests.kit.kubelet.node_under_test import Node
from tests.kit.kubelet.pod import Pod


def put(api: ApiServer, pod: Pod, memory: str = "", **annotations: str) -> Pod:
    """Tells the API server of a pod that the kubelet has."""

    def limits(size: int) -> dict[str, str]:
        return {"edge/gpu-percent": str(size)} | ({"edge/gpu-memory-mib": memory} if memory else {})

    containers = {name: limits(size) for name, size in pod.containers.items()}
    init = {name: limits(size) for name, size in pod.init.items()}
    noted = {f"edge/{key.replace('_', '-')}": value for key, value in annotations.items()}
    api.put_pod(pod.name, pod.uid, containers, noted, init)
    return pod


def assigned(api: ApiServer, pod: Pod, *devices: str, memory: str = "", **annotations: str) -> Pod:
    """Tells the API server of a pod all of whose containers are assigned these devices."""
    containers = {name: list(devices) for name, size in [*pod.init.items(), *pod.containers.items()] if size}
    return put(api, pod, memory, gpu_assignment=json.dumps(containers), **annotations)


async def device_of(node: Node, pod: Pod) -> set[str]:
    """The devices of the units that a pod gets at its admission."""
    units = await node.kubelet.admit(pod)
    return {unit.partition("::")[0] for each in units.values() for unit in each}
