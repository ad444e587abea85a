"""Coral's EdgeTPUs, as sysfs has them: on the PCI bus by the driver ``apex``, on USB with no driver at all."""

import re
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.corals import PCI_ID, USB_IDS, PcieFacts, Seen, UsbFacts, devices_of, with_those_away
from edgeshare.inventory.interface import DevicesAlone
from edgeshare.inventory.tree import PCI_DEVICES, Tree

USB_DEVICES = "/sys/bus/usb/devices"
APEX_CLASS = "/sys/class/apex"

PORT = re.compile(r"[0-9]+-[0-9]+(\.[0-9]+)*")
"""A device's name on the USB; root hubs (``usb1``) and interfaces (``1-1:1.0``) have others."""

NODE = re.compile(r"apex_[0-9]+")

USB_NUMBER_MAX = 999
"""More digits no node below ``/dev/bus/usb`` has."""


class EdgeTpuInventory(DevicesAlone):
    """The EdgeTPUs of this machine. Of their 8 MB, which hold parts of models, nobody is told, and of processes the
    driver knows only whether there is one."""

    def __init__(self, root: Path = Path("/"), now_ns: Callable[[], int] = monotonic_ns) -> None:
        self._tree = Tree(root)
        self._now_ns = now_ns
        self._seen: dict[str, Seen] = {}

    def devices(self) -> list[Device]:
        """All of them; one on USB that has just left the bus is still among them. Raises Unavailable."""
        found = devices_of(self._pcie(), self._usb())
        devices, self._seen = with_those_away(self._seen, found, self._now_ns())
        return devices

    def temperature_c(self, device_id: str) -> float | None:
        """Known for one with a driver, thus on the PCI bus."""
        try:
            name = self._names_by_address().get(device_id)
            millidegrees = None if name is None else self._tree.number(f"{APEX_CLASS}/{name}/temp")
        except Unavailable:
            return None
        return None if millidegrees is None else millidegrees / 1000

    def _names_by_address(self) -> dict[str, str]:
        """PCI address → the driver's name for the device."""
        names = [name for name in self._tree.names(APEX_CLASS) if NODE.fullmatch(name)]
        return {self._tree.target(f"{APEX_CLASS}/{name}/device") or "": name for name in names}

    def _pcie(self) -> list[PcieFacts]:
        names = self._names_by_address()
        return [
            self._pcie_facts(address, names.get(address, ""))
            for address in self._tree.names(PCI_DEVICES)
            if self._ids(f"{PCI_DEVICES}/{address}", "vendor", "device") == PCI_ID
        ]

    def _pcie_facts(self, address: str, name: str) -> PcieFacts:
        numa_node = self._tree.number(f"{PCI_DEVICES}/{address}/numa_node")
        return PcieFacts(
            address=address,
            node=f"/dev/{name}" if name else "",
            node_exists=bool(name) and self._tree.exists(f"/dev/{name}"),
            status=(self._tree.line(f"{APEX_CLASS}/{name}/status") or "") if name else "",
            numa_node=-1 if numa_node is None else numa_node,
        )

    def _usb(self) -> list[UsbFacts]:
        return [
            facts
            for port in self._tree.names(USB_DEVICES)
            if PORT.fullmatch(port)
            and self._ids(f"{USB_DEVICES}/{port}", "idVendor", "idProduct") in USB_IDS
            and (facts := self._usb_facts(port)) is not None
        ]

    def _usb_facts(self, port: str) -> UsbFacts | None:
        """None for one that goes while it is looked at."""
        bus = self._tree.number(f"{USB_DEVICES}/{port}/busnum")
        number = self._tree.number(f"{USB_DEVICES}/{port}/devnum")
        if bus is None or number is None:
            return None
        if not (0 < bus <= USB_NUMBER_MAX and 0 < number <= USB_NUMBER_MAX):
            raise Unavailable(f"{USB_DEVICES}/{port} says bus {bus}, device {number}: no USB has such a device")
        node = f"/dev/bus/usb/{bus:03d}/{number:03d}"
        return UsbFacts(port, bus, number, self._tree.exists(node))

    def _ids(self, folder: str, vendor: str, product: str) -> tuple[str, str]:
        return self._id(f"{folder}/{vendor}"), self._id(f"{folder}/{product}")

    def _id(self, path: str) -> str:
        try:
            content = self._tree.read(path) or b""
        except Unavailable:
            # Other makers' devices stand beside ours: what is wrong with theirs is none of our business.
            return ""
        return content[:16].strip().decode("latin-1").lower().removeprefix("0x")
