"""Coral's EdgeTPUs."""

from collections.abc import Callable

from edgeshare.inventory.corals import AWAY_NS, PCI_ID, USB_IDS
from edgeshare.inventory.tree import Tree
from labeller.facts import BusFacts, CoralFacts
from labeller.sources import buses

BUSES = {"pci": "pcie", "usb": "usb"}


class Corals:
    """The Corals of a machine, looked for again and again: one on USB leaves the bus at its first use, for some
    seconds."""

    def __init__(self, tree: Tree, now_ns: Callable[[], int]) -> None:
        self._tree = tree
        self._now_ns = now_ns
        self._seen: dict[str, tuple[CoralFacts, int]] = {}

    def look(self) -> tuple[CoralFacts, ...]:
        """By id; one that left USB a moment ago is still there, as it was. Raises Unavailable."""
        now_ns = self._now_ns()
        found = {device.address: device for device in buses.look(self._tree) if _is_coral(device)}
        seen = {address: (_coral(device), now_ns) for address, device in found.items()}
        for address, (coral, at_ns) in self._seen.items():
            if coral.bus == "usb" and now_ns - at_ns < AWAY_NS:
                seen.setdefault(address, (coral, at_ns))
        self._seen = seen
        return tuple(seen[address][0] for address in sorted(seen))


def _is_coral(device: BusFacts) -> bool:
    ids = (device.vendor_id, device.device_id)
    return ids in USB_IDS if device.bus == "usb" else ids == PCI_ID


def _coral(device: BusFacts) -> CoralFacts:
    return CoralFacts(device.address, BUSES[device.bus], device.vendor_id, device.device_id)
