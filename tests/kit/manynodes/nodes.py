"""The nodes: what each of them is said to have."""

import uuid
from collections.abc import Iterator
from typing import Any

from deviceplugin.cluster.accelerator_node import accelerator_node
from edgeshare.contract.devices import Device
from edgeshare.contract.health import Health
from edgeshare.contract.names import ACCELERATOR_NODES, GPU_MEMORY_MIB, GPU_PERCENT
from edgeshare.contract.units import UNITS_PER_DEVICE

GPUS = 8
GPU_MIB = 24_000
MODEL = "NVIDIA A10"
CAPACITY = {
    "cpu": "128",
    "memory": "1024Gi",
    "pods": "250",
    GPU_PERCENT: str(GPUS * UNITS_PER_DEVICE),
    GPU_MEMORY_MIB: str(GPUS * GPU_MIB),
}


def names(count: int) -> list[str]:
    """Of so many nodes."""
    return [f"node-{number:05d}" for number in range(count)]


def devices(node: str) -> list[Device]:
    """Its GPUs, with the same ids in each run."""
    ids = (uuid.uuid5(uuid.NAMESPACE_DNS, f"{node}.{index}") for index in range(GPUS))
    return [Device(f"GPU-{each}", index, MODEL, GPU_MIB) for index, each in enumerate(ids)]


def objects(node: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The Node and its AcceleratorNode, each with the path that it is made at."""
    metadata = {"name": node, "labels": {"kubernetes.io/hostname": node}}
    status = {"capacity": CAPACITY, "allocatable": CAPACITY}
    yield "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    described = [(device, Health()) for device in devices(node)]
    # No garbage collector runs, so that the uid is not looked at.
    yield ACCELERATOR_NODES, accelerator_node(node, str(uuid.uuid5(uuid.NAMESPACE_DNS, node)), described, ())
