"""NVIDIA's GPUs: what their driver tells, and what the kernel says of them on the PCI bus."""

from collections import Counter
from dataclasses import replace

from edgeshare.contract.errors import NoDriver, Unavailable
from edgeshare.contract.units import MIB
from edgeshare.inventory.gpus import pci_folder
from edgeshare.inventory.nvml.cards import Card, MigDevice, read_cards
from edgeshare.inventory.nvml.library import has_hardware
from edgeshare.inventory.tree import PCI_DEVICES, Tree
from labeller.facts import DriverFacts, GpuFacts, Incomplete, MigProfile, NvmlFacts

MACHINE = "/sys/class/dmi/id/product_name"
"""What the firmware calls the machine. (Linux, Documentation/ABI/testing/sysfs-class-dmi.)"""


def look(tree: Tree) -> NvmlFacts | None:
    """None on a machine with no driver, and no GPU for one. Raises Unavailable where it does not answer; and where it
    cannot read one of the GPUs that it lists Incomplete, with the others."""
    try:
        cards = read_cards(tree)
    except NoDriver:
        return None
    except Unavailable:
        # Its libraries are often on machines without a GPU, too.
        if tree.exists(PCI_DEVICES) and not has_hardware(tree):
            return None
        raise
    facts = NvmlFacts(
        driver=DriverFacts(cards.driver_version, *cards.cuda),
        gpus=tuple(_gpu(card, tree) for card in cards.found),
        machine=_line(tree, MACHINE),
    )
    if cards.unread:
        raise Incomplete("; ".join(cards.unread), facts)
    return facts


def _gpu(card: Card, tree: Tree) -> GpuFacts:
    vendor, device = f"{card.pci_id & 0xFFFF:04x}", f"{card.pci_id >> 16:04x}"
    return GpuFacts(
        id=card.id,
        index=card.index,
        product=card.name,
        memory_mib=(card.total_bytes - card.reserved_bytes) // MIB,
        total_mib=card.total_bytes // MIB,
        compute_major=card.compute[0],
        compute_minor=card.compute[1],
        vendor_id=vendor if card.pci_id else "",
        device_id=device if card.pci_id else "",
        pci_class=_line(tree, f"{pci_folder(card.bus_id)}/class").removeprefix("0x") if card.bus_id else "",
        virtual=card.virtual,
        mig_capable=card.mig is not None,
        mig_enabled=bool(card.mig),
        mig=_profiles(card),
    )


def _profiles(card: Card) -> tuple[MigProfile, ...]:
    counts = Counter(_profile(device) for device in card.mig_devices)
    return tuple(replace(profile, count=count) for profile, count in counts.items())


def _profile(device: MigDevice) -> MigProfile:
    return MigProfile(
        name=device.name.rpartition(" MIG ")[2],
        product=device.name,
        count=1,
        total_mib=device.total_bytes // MIB,
        memory_mib=(device.total_bytes - device.reserved_bytes) // MIB,
        attributes=device.attributes,
    )


def _line(tree: Tree, path: str) -> str:
    """A line of the kernel's, what is no text in it replaced; empty where there is none. Raises Unavailable."""
    return (tree.read(path) or b"").decode(errors="replace").strip()
