"""What each GPU says of itself, parsed: what cannot be is no answer."""

import re
from dataclasses import dataclass
from functools import wraps
from typing import Any

import pynvml

from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.nvml.library import RefusedError, in_range, needed, number, told
from edgeshare.inventory.nvml.values import MOST_C, MOST_GPUS, MOST_MINOR, NonsenseError, name_in

UNNAMED = "NVIDIA GPU"
"""What a GPU is called that does not say its name."""

NO_FILE = "its device file is not known"

BUS_ID = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]")

_gpus: set[str] = set()
"""The UUIDs of all GPUs that were told of. Of the process, as the library is: one that is another at each look is no
name, and each costs memory."""


@dataclass(frozen=True)
class Pci:
    """Where a GPU is on the bus."""

    bus_id: str
    """``00000000:20:00.0``."""
    id: int
    """Device in the upper 16 bits, vendor (10de) in the lower."""


def count_gpus() -> int:
    """How many the driver lists; raises Unavailable where it does not, as where it went away."""
    call = pynvml.nvmlDeviceGetCount
    try:
        count = int(needed(call))
        if count > MOST_GPUS:
            raise RefusedError(call, NonsenseError(f"{count} GPUs, where {MOST_GPUS} is the most"))
    except RefusedError as error:
        raise Unavailable(f"the NVIDIA driver does not list its GPUs: {error}; nvidia-smi tells more") from error
    return count


def id_of(handle: Any) -> str:
    """A device's UUID; raises RefusedError, also for one that is no name."""
    call = pynvml.nvmlDeviceGetUUID
    found = str(needed(call, handle))
    if not is_device_id(found):
        raise RefusedError(call, NonsenseError(f"its UUID is {found!r}"))
    if found not in _gpus and not found.startswith("MIG-"):
        if len(_gpus) >= MOST_GPUS:
            raise RefusedError(call, NonsenseError(f"its UUID is another, after {MOST_GPUS}"))
        _gpus.add(found)
    return found


def name_of(handle: Any, of: str) -> str:
    """A device's name, as the driver has it; what is no text in it, or cannot be shown, is replaced."""
    return name_in(told(_product_name, handle, of=of, without=f"it is called {UNNAMED}") or UNNAMED)


def minor_of(handle: Any, of: str) -> int | None:
    """Of its device file; None where it does not say. Raises RefusedError where the GPU is gone."""
    minor = told(pynvml.nvmlDeviceGetMinorNumber, handle, of=of, without=NO_FILE)
    return None if minor is None else in_range(pynvml.nvmlDeviceGetMinorNumber, minor, of, MOST_MINOR, NO_FILE)


def pci_of(handle: Any, of: str, without: str = "") -> Pci | None:
    """None for one on no PCI bus. Raises RefusedError where the GPU is gone."""
    return told(_pci, handle, of=of, without=without)


def temperature_of(handle: Any, of: str) -> int | None:
    """In degrees Celsius; None where it does not say. Raises RefusedError where the GPU is gone."""
    return number(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU, of=of, most=MOST_C)


@wraps(pynvml.nvmlDeviceGetName)
def _product_name(handle: Any) -> str:
    try:
        return str(pynvml.nvmlDeviceGetName(handle))
    except UnicodeDecodeError as error:
        return bytes(error.object).decode(errors="replace")


@wraps(pynvml.nvmlDeviceGetPciInfo)
def _pci(handle: Any) -> Pci:
    """Raises ValueError for an address that is none."""
    found = pynvml.nvmlDeviceGetPciInfo(handle)
    bus_id = str(found.busId)
    if not BUS_ID.fullmatch(bus_id):
        raise ValueError(f"{bus_id!r} is no PCI address")
    return Pci(bus_id, int(found.pciDeviceId))
