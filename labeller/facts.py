"""What the labeller's sources find on a machine. Derivations make labels of these, and of nothing else."""

from dataclasses import dataclass

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.gpus import MigAttributes


@dataclass(frozen=True)
class MigProfile:
    """MIG devices of one shape, on one GPU."""

    name: str
    """As NVIDIA names it: ``1g.10gb``."""
    product: str
    """The driver's name for such a device: ``NVIDIA H100 80GB HBM3 MIG 1g.10gb``."""
    count: int
    total_mib: int
    """Of each, like what follows."""
    memory_mib: int
    """Total, less what the driver keeps for itself."""
    attributes: MigAttributes | None = None
    """None where the driver does not say."""


@dataclass(frozen=True)
class GpuFacts:
    """A physical GPU, as its driver tells of it."""

    id: str
    index: int
    product: str
    """The driver's name for it: ``NVIDIA GeForce RTX 4090``."""
    memory_mib: int
    """Total, less what the driver keeps for itself; 0 where the memory is the machine's and nobody says."""
    total_mib: int
    """Total memory with what the driver keeps: what nvidia-smi shows."""
    compute_major: int
    """Compute capability; 0.0 where nobody says."""
    compute_minor: int
    vendor_id: str = ""
    """PCI ids, four hexadecimal digits each, lower case; empty for one on no PCI bus."""
    device_id: str = ""
    pci_class: str = ""
    """PCI class, subclass and interface, six hexadecimal digits: ``030200``; empty where the machine does not say."""
    virtual: bool = False
    """A part of a GPU that a hypervisor hands out: a vGPU."""
    mig_capable: bool = False
    mig_enabled: bool = False
    mig: tuple[MigProfile, ...] = ()


@dataclass(frozen=True)
class DriverFacts:
    """NVIDIA's driver."""

    version: str
    """``580.95.05``; empty where it does not say."""
    cuda_major: int
    """The newest CUDA that it can run; 0.0 where it does not say."""
    cuda_minor: int


@dataclass(frozen=True)
class NvmlFacts:
    """All that NVML tells."""

    driver: DriverFacts
    gpus: tuple[GpuFacts, ...]
    """By index."""
    machine: str = ""
    """What the maker calls the machine; empty where it does not say."""


@dataclass(frozen=True)
class JetsonFacts:
    """The Jetson that this is."""

    compatible: tuple[str, ...]
    """The devicetree's root, most exact first."""
    model: str
    """``NVIDIA Jetson Orin Nano Developer Kit``; may be empty."""
    release: str
    """Jetson Linux, ``32.4.3``; empty where /etc/nv_tegra_release is not there."""
    memory_mib: int
    """Of the machine, which its GPU shares."""


@dataclass(frozen=True)
class DevicetreeNode:
    """One node of the devicetree that was asked for."""

    name: str
    """Without its unit address; empty for the root."""
    compatible: tuple[str, ...]


@dataclass(frozen=True)
class CoralFacts:
    """A Coral EdgeTPU."""

    id: str
    bus: str
    """``usb`` or ``pcie``."""
    vendor_id: str
    device_id: str


@dataclass(frozen=True)
class BusFacts:
    """A device on PCI or USB, whatever it is; on USB, one with interfaces of several classes is there once for each."""

    bus: str
    """``pci`` or ``usb``."""
    address: str
    class_code: str
    """Hexadecimal: PCI class and subclass (``0302``), or USB class (``ff``)."""
    vendor_id: str
    device_id: str


@dataclass(frozen=True)
class Facts:
    """A machine. None, or nothing, where it has no such thing: that is normal."""

    nvml: NvmlFacts | None = None
    jetson: JetsonFacts | None = None
    devicetree: tuple[DevicetreeNode, ...] = ()
    corals: tuple[CoralFacts, ...] = ()
    buses: tuple[BusFacts, ...] = ()
    unread: frozenset[str] = frozenset()
    """Sources that could never be read yet: what they would tell is not known, all of it or some."""


class Incomplete(Unavailable):
    """A source could read a part of what is there: ``found``, which is not to take the place of what was read in full
    before."""

    def __init__(self, why: str, found: NvmlFacts) -> None:
        super().__init__(why)
        self.found = found
