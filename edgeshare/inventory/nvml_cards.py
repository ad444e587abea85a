"""What NVIDIA's driver says of the GPUs as products: their names, their kinds, how they are divided, and itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pynvml

from edgeshare.errors import Unavailable
from edgeshare.inventory.gpus import MigAttributes
from edgeshare.inventory.nvml_library import begin, end, mig_devices, mig_mode, name_of, read_memory, said
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
    """All of a machine's."""

    driver_version: str
    cuda: tuple[int, int]
    """The newest CUDA that the driver can run."""
    found: tuple[Card, ...]
    unread: tuple[str, ...]
    """Of each that the driver lists and cannot read: why."""


def read_cards(tree: Tree) -> Cards:
    """Raises NoDriver where there is no driver and nothing that needs one, Unavailable where it does not answer."""
    with _library(tree):
        found, unread = [], []
        try:
            version = str(pynvml.nvmlSystemGetDriverVersion())
            cuda = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise Unavailable(f"the NVIDIA driver does not list its GPUs: {error}; nvidia-smi tells more") from error
        for index in range(count):
            try:
                found.append(_read_card(index))
            except pynvml.NVMLError as error:
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
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    total_bytes, reserved_bytes = _memory(handle)
    major, minor = said(pynvml.nvmlDeviceGetCudaComputeCapability, handle) or (0, 0)
    pci = said(pynvml.nvmlDeviceGetPciInfo, handle)
    mig = mig_mode(handle)
    return Card(
        id=str(pynvml.nvmlDeviceGetUUID(handle)),
        index=index,
        name=name_of(handle),
        total_bytes=total_bytes,
        reserved_bytes=reserved_bytes,
        compute=(int(major), int(minor)),
        bus_id=str(pci.busId) if pci else "",
        pci_id=int(pci.pciDeviceId) if pci else 0,
        virtual=said(pynvml.nvmlDeviceGetVirtualizationMode, handle) == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU,
        mig=mig,
        mig_devices=tuple(_read_mig_device(part) for part in mig_devices(handle)) if mig else (),
    )


def _read_mig_device(handle: Any) -> MigDevice:
    memory, reserved_bytes = read_memory(handle)
    told = said(pynvml.nvmlDeviceGetAttributes_v2, handle)
    return MigDevice(
        name=name_of(handle),
        total_bytes=int(memory.total),
        reserved_bytes=reserved_bytes,
        attributes=told
        and MigAttributes(
            multiprocessors=told.multiprocessorCount,
            gpu_instance_slices=told.gpuInstanceSliceCount,
            compute_instance_slices=told.computeInstanceSliceCount,
            copy_engines=told.sharedCopyEngineCount,
            decoders=told.sharedDecoderCount,
            encoders=told.sharedEncoderCount,
            jpeg_engines=told.sharedJpegCount,
            ofa_engines=told.sharedOfaCount,
        ),
    )


def _memory(handle: Any) -> tuple[int, int]:
    try:
        memory, reserved_bytes = read_memory(handle)
    except pynvml.NVMLError_NotSupported:
        # DGX Spark, Orin, Thor: it is the machine's.
        return 0, 0
    return int(memory.total), reserved_bytes
