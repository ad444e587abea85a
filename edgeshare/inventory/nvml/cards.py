"""What NVIDIA's driver says of the GPUs as products: their names, their kinds, how they are divided, and itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pynvml

from edgeshare.inventory.gpus import MigAttributes
from edgeshare.inventory.nvml.driver import driver_version
from edgeshare.inventory.nvml.facts import count_gpus, id_of, name_of, pci_of
from edgeshare.inventory.nvml.library import (
    RefusedError,
    begin,
    each_mig_device,
    end,
    mig_mode,
    needed,
    number,
    read_memory,
    told,
)
from edgeshare.inventory.nvml.values import MOST_CUDA, Memory
from edgeshare.inventory.tree import Tree


@dataclass(frozen=True)
class MigDevice:
    """A part of a GPU that is a device of its own."""

    name: str
    """The GPU's name, ``MIG`` and a profile: ``NVIDIA A100-SXM4-40GB MIG 1g.5gb``."""
    total_bytes: int
    reserved_bytes: int
    attributes: MigAttributes | None
    """None where the driver does not say."""


@dataclass(frozen=True)
class Card:
    """A physical GPU."""

    id: str
    index: int
    name: str
    total_bytes: int
    """0 where its memory is the machine's."""
    reserved_bytes: int
    """What the driver keeps for itself."""
    compute: tuple[int, int]
    """Compute capability: (9, 0). (0, 0) where the driver does not say."""
    bus_id: str
    """``00000000:20:00.0``; empty for one on no PCI bus."""
    pci_id: int
    """Device in the upper 16 bits, vendor (10de) in the lower; 0 for one on no PCI bus."""
    virtual: bool
    """A part of a GPU that a hypervisor hands out: a vGPU."""
    mig: bool | None
    """Whether it is in MIG mode; None: it cannot be."""
    mig_devices: tuple[MigDevice, ...]


@dataclass(frozen=True)
class Cards:
    """A machine's GPUs, and their driver."""

    driver_version: str
    """Empty where the driver does not say."""
    cuda: tuple[int, int]
    """The newest CUDA that the driver can run. (0, 0) where it does not say."""
    found: tuple[Card, ...]
    unread: tuple[str, ...]
    """Of each that the driver lists and cannot read: why."""


def read_cards(tree: Tree) -> Cards:
    """Raises NoDriver where there is no driver and nothing that needs one, Unavailable where it does not answer."""
    with _library(tree):
        found, unread = [], []
        version = driver_version()
        call = pynvml.nvmlSystemGetCudaDriverVersion_v2
        cuda = number(call, of="", most=MOST_CUDA, without="which CUDA it can run is not known") or 0
        for index in range(count_gpus()):
            try:
                found.append(_read_card(index))
            except RefusedError as error:
                unread.append(f"GPU {index} cannot be read: {error}; nvidia-smi tells more")
    return Cards(version, (cuda // 1000, cuda % 1000 // 10), tuple(found), tuple(unread))


@contextmanager
def _library(tree: Tree) -> Iterator[None]:
    begin(tree)
    try:
        yield
    finally:
        end()


def _read_card(index: int) -> Card:
    handle = needed(pynvml.nvmlDeviceGetHandleByIndex, index)
    device_id = id_of(handle)
    memory = _memory(handle, device_id)
    compute = told(
        pynvml.nvmlDeviceGetCudaComputeCapability, handle, of=device_id, without="its compute capability is not known"
    )
    major, minor = compute or (0, 0)
    pci = pci_of(handle, device_id)
    mode = told(pynvml.nvmlDeviceGetVirtualizationMode, handle, of=device_id)
    mig = mig_mode(handle, device_id)
    return Card(
        id=device_id,
        index=index,
        name=name_of(handle, device_id),
        total_bytes=memory.total,
        reserved_bytes=memory.reserved,
        compute=(int(major), int(minor)),
        bus_id=pci.bus_id if pci else "",
        pci_id=pci.id if pci else 0,
        virtual=mode == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU,
        mig=mig,
        mig_devices=tuple(each_mig_device(handle, device_id, _read_mig_device)) if mig else (),
    )


def _read_mig_device(handle: Any, name: str) -> MigDevice:
    memory = read_memory(handle, name)
    attributes = told(pynvml.nvmlDeviceGetAttributes_v2, handle, of=name)
    return MigDevice(
        name=name_of(handle, name),
        total_bytes=memory.total,
        reserved_bytes=memory.reserved,
        attributes=attributes
        and MigAttributes(
            multiprocessors=attributes.multiprocessorCount,
            gpu_instance_slices=attributes.gpuInstanceSliceCount,
            compute_instance_slices=attributes.computeInstanceSliceCount,
            copy_engines=attributes.sharedCopyEngineCount,
            decoders=attributes.sharedDecoderCount,
            encoders=attributes.sharedEncoderCount,
            jpeg_engines=attributes.sharedJpegCount,
            ofa_engines=attributes.sharedOfaCount,
        ),
    )


def _memory(handle: Any, of: str) -> Memory:
    try:
        return read_memory(handle, of)
    except RefusedError as error:
        if not error.not_supported:
            raise
        # DGX Spark, Orin, Thor: it is the machine's.
        return Memory(0, 0, 0)
