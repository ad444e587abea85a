"""What the kernel says of Coral's EdgeTPUs, made into devices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.units import NS_PER_S

PCI_ID = ("1ac1", "089a")
"""Vendor and device. (google/gasket-driver, src/apex_driver.c.)"""

USB_IDS = {("1a6e", "089a"), ("18d1", "9302")}
"""Before and after the first use, which puts firmware into it. (google-coral/edgetpu, issue 536.)"""

ALIVE = "ALIVE"
"""What the driver's attribute ``status`` says of a device that is well. (google/gasket-driver, src/gasket_core.c.)"""

AWAY_NS = 10 * NS_PER_S
"""A USB EdgeTPU leaves the bus at its first use, while it starts the firmware that it was given, and comes back some
seconds later."""

PCIE_MODEL = "Coral EdgeTPU PCIe"
USB_MODEL = "Coral EdgeTPU USB"


@dataclass(frozen=True)
class PcieFacts:
    """An EdgeTPU on the PCI bus."""

    address: str
    node: str
    """``/dev/apex_N``; empty where the driver does not have the device."""
    node_exists: bool
    status: str
    """The driver's; empty where it says none."""
    numa_node: int


@dataclass(frozen=True)
class UsbFacts:
    """An EdgeTPU on USB."""

    port: str
    """Bus and ports that lead to it: ``2-1.4``. It stays when the device comes back with other ids and number."""
    bus: int
    number: int
    node_exists: bool


@dataclass(frozen=True)
class Seen:
    """A device, and when it was last there (monotonic clock)."""

    device: Device
    at_ns: int


def devices_of(pcie: Iterable[PcieFacts], usb: Iterable[UsbFacts]) -> list[Device]:
    """What is there now, in no order."""
    return [_pcie_device(facts) for facts in pcie] + [_usb_device(facts) for facts in usb]


def with_those_away(
    seen: Mapping[str, Seen], found: Iterable[Device], now_ns: int
) -> tuple[list[Device], dict[str, Seen]]:
    """Adds the USB devices that left the bus a moment ago, as they were, and numbers all: PCIe before USB, each by its
    address. Also returns what was seen, for the next look."""
    fresh = {device.id: Seen(device, now_ns) for device in found}
    for device_id, last in seen.items():
        away = last.device.model == USB_MODEL and now_ns - last.at_ns < AWAY_NS
        if device_id not in fresh and away:
            fresh[device_id] = last
    listed = sorted((each.device for each in fresh.values()), key=lambda device: (device.model, device.id))
    return [replace(device, index=index) for index, device in enumerate(listed)], fresh


def _pcie_device(facts: PcieFacts) -> Device:
    if not facts.node:
        cause = "its driver does not have it: load the modules gasket and apex"
    elif not facts.node_exists:
        cause = f"{facts.node} is not there"
    elif facts.status not in ("", ALIVE):
        cause = f"its driver says {facts.status}"
    else:
        cause = ""
    return Device(
        id=facts.address,
        index=0,
        model=PCIE_MODEL,
        memory_mib=0,
        accelerator=Accelerator.EDGETPU,
        numa_node=facts.numa_node,
        paths=(facts.node,) if facts.node_exists else (),
        healthy=not cause,
        cause=cause,
        source="edgetpu",
    )


def _usb_device(facts: UsbFacts) -> Device:
    node = f"/dev/bus/usb/{facts.bus:03d}/{facts.number:03d}"
    return Device(
        id=facts.port,
        index=0,
        model=USB_MODEL,
        memory_mib=0,
        accelerator=Accelerator.EDGETPU,
        paths=(node,) if facts.node_exists else (),
        healthy=facts.node_exists,
        cause="" if facts.node_exists else f"{node} is not there",
        source="edgetpu",
    )
