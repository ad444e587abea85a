"""NVIDIA's management library itself: how it is begun, and what differs from one driver to another. It and the other
``nvml`` modules beside it are the only importers of its Python binding."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pynvml

from edgeshare.errors import NoDriver, Unavailable
from edgeshare.inventory.boards import is_tegra
from edgeshare.inventory.tree import DEVICETREE, PCI_DEVICES, Tree

Value = TypeVar("Value")


def begin(tree: Tree) -> None:
    """Loads the library; ``end`` lets go of it. Raises, with one line, NoDriver where there is none and
    nothing that would need it, and Unavailable where it does not answer."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        missing = isinstance(error, pynvml.NVMLError_LibraryNotFound) and not has_hardware(tree)
        # A Jetson's GPU needs no NVML, and Thor's is on the PCI bus all the same.
        kind = NoDriver if missing or is_tegra(tree.strings(f"{DEVICETREE}/compatible")) else Unavailable
        raise kind(f"no NVIDIA driver answers here: {_init_advice(error)}") from error


def end() -> None:
    """Lets go of the library, so that a driver can be unloaded."""
    # A driver that is gone may refuse, and there is nothing left to give back then.
    with suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


def has_hardware(tree: Tree) -> bool:
    """Whether a GPU of NVIDIA's is on the PCI bus, driver or not. Raises Unavailable."""
    return any(
        tree.line(f"{PCI_DEVICES}/{name}/vendor") == "0x10de"
        and (tree.line(f"{PCI_DEVICES}/{name}/class") or "").startswith("0x03")
        for name in tree.names(PCI_DEVICES)
    )


def said(call: Callable[..., Value], *arguments: Any) -> Value | None:
    """What the library answers; None where this GPU or this driver does not know it. Raises other errors."""
    try:
        return call(*arguments)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_NoPermission):
        return None


def name_of(handle: Any) -> str:
    """A device's name, as the driver has it; what is no text in it is replaced."""
    try:
        return str(pynvml.nvmlDeviceGetName(handle))
    except UnicodeDecodeError as error:
        return bytes(error.object).decode(errors="replace")


def mig_mode(handle: Any) -> bool | None:
    """Whether a GPU is in MIG mode; None for one that cannot be: before Ampere, or not for data centres, or with a
    driver before 450."""
    try:
        current, _ = pynvml.nvmlDeviceGetMigMode(handle)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return None
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def mig_devices(handle: Any) -> list[Any]:
    """The MIG devices of a GPU in that mode."""
    found = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            found.append(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place))
        except pynvml.NVMLError_NotFound:
            # Nobody has made a MIG device at that place.
            continue
    return found


def read_memory(handle: Any) -> tuple[Any, int]:
    """(memory information, bytes that the driver keeps for itself)."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    except pynvml.NVMLError_FunctionNotFound:
        # Drivers before 510 do not tell their reserve, and count it as used.
        return pynvml.nvmlDeviceGetMemoryInfo(handle), 0
    return memory, int(memory.reserved)


def _init_advice(error: pynvml.NVMLError) -> str:
    match error:
        case pynvml.NVMLError_LibraryNotFound():
            return "libnvidia-ml.so.1 is not in the library path; install the driver, or mount it here"
        case pynvml.NVMLError_DriverNotLoaded():
            return "the kernel module is not loaded; load it (modprobe nvidia), then start again"
        case pynvml.NVMLError_LibRmVersionMismatch():
            return "library and kernel module are of different versions; reboot, or load the new module"
        case _:
            return f"{error}; nvidia-smi tells more"
