"""Our labels of EdgeTPUs, and of whatever else accelerates something on PCI and USB."""

from collections import Counter
from collections.abc import Sequence

from labeller import names
from labeller.facts import BusFacts, CoralFacts

PCI_CLASSES = ("03", "0b40", "12")
"""Beginnings of PCI classes: display controllers, co-processors, processing accelerators. Node-feature-discovery labels
the same. (PCI ID Repository, pci.ids; source/pci/pci.go there.)"""

SCREENS = {"1013", "102b", "126f", "1234", "1414", "15ad", "18ca", "19e5", "1a03", "1af4", "1b36", "80ee"}
"""Makers of display controllers that show the console of a server or of a virtual machine, and compute nothing: Cirrus,
Matrox, Silicon Motion, QEMU (1234, 1b36), Hyper-V, VMware, XGI, Huawei, ASPEED, virtio, VirtualBox. (Same source.)"""

USB_IDS = {
    # Intel's Neural Compute Sticks, the last one while in use (OpenVINO, 97-myriad-usbboot.rules)
    ("03e7", "2150"),
    ("03e7", "2485"),
    ("03e7", "f63b"),
    # Kneron KL520 and KL720 (kneron/host_lib, README)
    ("3231", "0100"),
    ("3231", "0200"),
    ("3231", "0720"),
}
"""Vendor and product. Their classes tell nothing: other makers' things of every kind have the same. Coral's is not
among them: its ids change at its first use, and these labels would with them."""


def labels_of(corals: Sequence[CoralFacts], buses: Sequence[BusFacts]) -> dict[str, str]:
    """How many there are of each kind; nothing of a kind that is not there."""
    counts = {
        names.TPU_COUNT: len(corals),
        names.TPU_USB_COUNT: sum(coral.bus == "usb" for coral in corals),
        names.TPU_PCIE_COUNT: sum(coral.bus == "pcie" for coral in corals),
    }
    labels = {name: str(count) for name, count in counts.items() if count}
    for name, count in Counter(_kind(device) for device in buses if _accelerates(device)).items():
        labels |= {f"{name}{names.BUS_PRESENT}": "true", f"{name}{names.BUS_COUNT}": str(count)}
    return labels


def _kind(device: BusFacts) -> str:
    codes = [device.class_code, device.vendor_id]
    return names.bus_device(device.bus, *(codes if device.bus == "pci" else [*codes, device.device_id]))


def _accelerates(device: BusFacts) -> bool:
    if device.bus == "usb":
        return (device.vendor_id, device.device_id) in USB_IDS
    if device.class_code.startswith("03"):
        return device.vendor_id not in SCREENS
    return device.class_code.startswith(PCI_CLASSES)
