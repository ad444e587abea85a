"""What is different for an EdgeTPU: it has no memory to cap and no driver's library to ask, and lets one process in
at a time."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from edgeshare.contract.devices import Device
from edgeshare.inventory.corals import USB_MODEL
from sharemgr.node.config import Config
from sharemgr.node.turns.settings import Settings


def settings(config: Config) -> Settings:
    """The rule's constants for one."""
    return Settings(
        slice_ns=config.tpu_slice_ns,
        window_ns=config.window_ns,
        queue_cap_ns=0,
        anticipation_ns=config.tpu_anticipation_ns,
        exclusive=True,
    )


def device_lines(devices: Iterable[Device], sysfs: Path) -> Iterator[str]:
    """What hook.conf says of an allocation's devices: the nodes that are opened, and for one on the USB where sysfs
    tells the number that it has now, since it comes under another one once it has its firmware."""
    for device in devices:
        if device.source == "edgetpu" and device.model == USB_MODEL:
            # Its id is the port's path, as sysfs names it.
            yield f"usb-device={sysfs / 'bus/usb/devices' / device.id}"
        else:
            yield from (f"device={path}" for path in device.paths)
