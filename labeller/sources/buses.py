"""What sysfs says of the devices on PCI and USB."""

import re
from collections.abc import Iterator

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.edgetpu import PORT, USB_DEVICES
from edgeshare.inventory.tree import PCI_DEVICES, Tree
from labeller.facts import BusFacts

HEX = re.compile(r"[0-9a-f]{2,6}")

UNSPECIFIED = "00"
"""Class of a USB device whose interfaces have classes of their own."""


def look(tree: Tree) -> tuple[BusFacts, ...]:
    """All of them, by address; none on a machine without these buses. Raises Unavailable."""
    return (*_pci(tree), *_usb(tree))


def _pci(tree: Tree) -> Iterator[BusFacts]:
    for address in tree.names(PCI_DEVICES):
        folder = f"{PCI_DEVICES}/{address}"
        vendor, device, class_code = (_code(tree, f"{folder}/{name}") for name in ("vendor", "device", "class"))
        if vendor and device:
            # The last two digits are the programming interface.
            yield BusFacts("pci", address, class_code[:4], vendor, device)


def _usb(tree: Tree) -> Iterator[BusFacts]:
    for port in filter(PORT.fullmatch, tree.names(USB_DEVICES)):
        folder = f"{USB_DEVICES}/{port}"
        vendor, product, own = (_code(tree, f"{folder}/{name}") for name in ("idVendor", "idProduct", "bDeviceClass"))
        if vendor and product:
            for class_code in _interface_classes(tree, folder) if own == UNSPECIFIED else [own]:
                yield BusFacts("usb", port, class_code, vendor, product)


def _interface_classes(tree: Tree, folder: str) -> list[str]:
    """Each class once; the device's where it has no interface for now."""
    found = {_code(tree, f"{folder}/{name}/bInterfaceClass") for name in tree.names(folder) if ":" in name}
    return sorted(found - {""}) or [UNSPECIFIED]


def _code(tree: Tree, path: str) -> str:
    """A number in hexadecimal, lower case, without ``0x``; empty where there is none."""
    try:
        content = tree.read(path) or b""
    except Unavailable:
        # What is wrong with one device says nothing of the others.
        return ""
    text = content[:16].strip().decode("latin-1").lower().removeprefix("0x")
    return text if HEX.fullmatch(text) else ""
