"""What a device is, whoever found it."""

import re
from dataclasses import dataclass
from enum import StrEnum


class Accelerator(StrEnum):
    """The kinds of device that are shared."""

    GPU = "gpu"
    EDGETPU = "edgetpu"


NVML_PREFIXES = ("GPU-", "MIG-")
"""Of the ids by which NVIDIA's driver and runtime know a GPU. They know none for a Jetson's, of which a machine has
one, and a GPU declared by hand may be nobody's that they know."""


@dataclass(frozen=True)
class Device:
    """A physical accelerator, as an inventory reports it."""

    id: str
    """Stable across reboots: NVML's UUID of a GPU or MIG device, a Jetson's serial number, an EdgeTPU's PCI address or
    USB port path, or what the configuration says."""
    index: int
    """Its place among the devices of its kind, for people: it can change when devices come or go."""
    model: str
    memory_mib: int
    """Total, less what the driver, or on a Jetson the system, keeps for itself. 0 where memory is not shared out."""
    accelerator: Accelerator = Accelerator.GPU
    numa_node: int = -1
    """-1 where the machine does not say."""
    paths: tuple[str, ...] = ()
    """Device nodes that a container needs to use it."""
    healthy: bool = True
    cause: str = ""
    """Why it is not healthy."""
    source: str = ""
    """The inventory that found it: nvml, jetson, edgetpu or declared."""
    parent: str = ""
    """Id of the physical GPU that this MIG device is a part of."""


ID = re.compile(r"[0-9A-Za-z]([0-9A-Za-z._:-]{0,57}[0-9A-Za-z])?")
"""With ``::`` and a unit's two digits at most 63 characters, the kubelet's limit; and a name that the Container Device
Interface takes."""


def is_device_id(text: str) -> bool:
    """Whether a device can be called so."""
    return ID.fullmatch(text) is not None and "::" not in text
