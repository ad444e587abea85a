"""What NVML and the kernel say of a machine's GPUs, made into devices."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from edgeshare.contract.devices import Device
from edgeshare.contract.units import MIB

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""Device nodes that every CUDA program needs beside its GPU's own; the last two are not there everywhere."""

CAPABILITY_MINOR = re.compile(rb"^DeviceFileMinor: ([0-9]{1,6})$", re.MULTILINE)


@dataclass(frozen=True)
class Partition:
    """A MIG device: a part of a GPU that is a device of its own."""

    id: str
    model: str
    total_bytes: int
    reserved_bytes: int
    capabilities: tuple[int, ...]
    """Minor numbers of the nodes that let a program use it: of its GPU instance and of its compute instance."""


@dataclass(frozen=True)
class Gpu:
    """A physical GPU."""

    id: str
    index: int
    minor: int | None
    """Of its device node; None where the driver does not say."""
    model: str
    total_bytes: int
    reserved_bytes: int
    """What the driver keeps for itself."""
    numa_node: int
    partitioned: bool = False
    """In MIG mode: then it cannot be used as a whole."""
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class MigAttributes:
    """How much of its GPU a MIG device has."""

    multiprocessors: int
    gpu_instance_slices: int
    compute_instance_slices: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int
    """Optical flow accelerators."""


def devices_of(gpus: Iterable[Gpu], nodes_there: Collection[str]) -> list[Device]:
    """One device a GPU; in place of one in MIG mode its MIG devices, none if it has none. ``nodes_there`` are the
    device nodes, among those that could be named, that exist."""
    found: list[Device] = []
    for gpu in sorted(gpus, key=lambda gpu: gpu.index):
        whole = Device(
            id=gpu.id,
            index=len(found),
            model=gpu.model,
            memory_mib=(gpu.total_bytes - gpu.reserved_bytes) // MIB,
            numa_node=gpu.numa_node,
            paths=_present(nodes_of(gpu), nodes_there),
            source="nvml",
        )
        if not gpu.partitioned:
            found.append(whole)
        for partition in gpu.partitions:
            found.append(
                replace(
                    whole,
                    id=partition.id,
                    index=len(found),
                    model=partition.model,
                    memory_mib=(partition.total_bytes - partition.reserved_bytes) // MIB,
                    paths=_present((*nodes_of(gpu), *capability_nodes(partition)), nodes_there),
                    parent=gpu.id,
                )
            )
    return found


def nodes_of(gpu: Gpu) -> tuple[str, ...]:
    """The device nodes of a GPU, as far as they are known, with those that all share."""
    return CONTROL_NODES if gpu.minor is None else (f"/dev/nvidia{gpu.minor}", *CONTROL_NODES)


def capability_nodes(partition: Partition) -> tuple[str, ...]:
    """The device nodes that open a MIG device. (NVIDIA, "MIG User Guide", "Device Nodes and Capabilities".)"""
    return tuple(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in partition.capabilities)


def access_files(minor: int, gpu_instance: int, compute_instance: int) -> tuple[str, str]:
    """Where the driver says which capabilities a MIG device needs. (Same source.)"""
    instance = f"/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gpu_instance}"
    return f"{instance}/access", f"{instance}/ci{compute_instance}/access"


def capability_minor(content: bytes | None) -> int | None:
    """The minor number that such a file names; None where it names none."""
    found = CAPABILITY_MINOR.search(content or b"")
    return int(found[1]) if found else None


def pci_folder(bus_id: str) -> str:
    """Where sysfs describes a device: NVML writes the PCI domain with eight digits, sysfs with four, or more where it
    needs them."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"/sys/bus/pci/devices/{int(domain, 16):04x}:{rest}"


def _present(nodes: Iterable[str], nodes_there: Collection[str]) -> tuple[str, ...]:
    return tuple(node for node in nodes if node in nodes_there)
