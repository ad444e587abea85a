"""NVIDIA's management library itself: how it is begun, and what differs from one driver to another. It and the other
``nvml`` modules beside it are the only importers of its Python binding."""

import ctypes
import logging
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from edgeshare.contract.errors import NoDriver, Unavailable
from edgeshare.inventory.boards import is_tegra
from edgeshare.inventory.nvml.values import MIG_SLICES, MOST_MIG_DEVICES, Memory, NonsenseError, memory_of
from edgeshare.inventory.tree import DEVICETREE, PCI_DEVICES, Tree

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

LIBRARY = "libnvidia-ml.so.1"
DRIVER_ROOT = "EDGESHARE_DRIVER_ROOT"
"""The variable that names a folder in which a driver lies by itself: a container's, a cloud's."""

FOLDERS = ("lib64", "usr/lib64", f"usr/lib/{platform.machine()}-linux-gnu", "usr/lib", "lib")
"""Where the library lies below such a folder: Container-Optimized OS, Red Hat's and Debian's distributions, others."""

NO_FAULTS = "faults are seen only as far as a look shows them"

_GONE = (
    pynvml.NVMLError_GpuIsLost,
    pynvml.NVMLError_ResetRequired,
    pynvml.NVMLError_InvalidArgument,  # a MIG device that was unmade
    pynvml.NVMLError_Uninitialized,
    pynvml.NVMLError_DriverNotLoaded,
)
"""What is refused with these is no detail: the GPU is not to be had."""

_NOT_THERE = (
    pynvml.NVMLError_NotSupported,
    pynvml.NVMLError_FunctionNotFound,
    pynvml.NVMLError_NoPermission,
    pynvml.NVMLError_NotFound,  # samples: there are none
)
"""How a GPU, or a driver, says that it does not have what others have, or has nothing now."""

_refused: set[tuple[str, str]] = set()
"""GPU and function of each refusal that the log has. Of the process, as the library is."""

_told: dict[tuple[str, str], Any] = {}
"""GPU and function → what it answered last, of what does not change."""


class RefusedError(Exception):
    """A GPU cannot be had: the text says which function refused, or said what cannot be, and how."""

    def __init__(self, call: Callable[..., object], error: Exception) -> None:
        super().__init__(f"{error} ({_name(call)})")
        self.lost = isinstance(error, pynvml.NVMLError_GpuIsLost)
        self.gone = isinstance(error, _GONE)
        self.not_supported = isinstance(error, pynvml.NVMLError_NotSupported)


def begin(tree: Tree) -> None:
    """Loads the library; ``end`` lets go of it. Raises, with one line, NoDriver where there is none and
    nothing that would need it, and Unavailable where it does not answer."""
    try:
        _load_from_root()
        pynvml.nvmlInit()
    except OSError as error:
        raise Unavailable(f"NVIDIA's library cannot be loaded: {error}") from error
    except pynvml.NVMLError as error:
        missing = isinstance(error, pynvml.NVMLError_LibraryNotFound) and not has_hardware(tree)
        # A Jetson's GPU needs no NVML, and Thor's is on the PCI bus all the same.
        kind = NoDriver if missing or is_tegra(tree.strings(f"{DEVICETREE}/compatible")) else Unavailable
        raise kind(f"no NVIDIA driver answers here: {_init_advice(error)}") from error


def _load_from_root() -> None:
    """Loads the library from below the driver's root, if it is there: the binding then finds it by its name.

    By its path, never by LD_LIBRARY_PATH: beside it may lie the C library of another distribution, with which this
    program would not start. Raises OSError for a file that cannot be loaded.
    """
    if root := os.environ.get(DRIVER_ROOT):
        found = next((path for folder in FOLDERS if (path := Path(root, folder, LIBRARY)).exists()), None)
        if found is not None:
            ctypes.CDLL(str(found))


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


def needed(call: Callable[..., Value], *arguments: Any) -> Value:
    """What the library answers; raises RefusedError."""
    try:
        return _answer(call, *arguments)
    except (pynvml.NVMLError, NonsenseError) as error:
        raise RefusedError(call, error) from error


def said(call: Callable[..., Value], *arguments: Any, of: str = "", without: str = "") -> Value | None:
    """What the library answers; None where it refuses, or cannot be read. Raises RefusedError where the GPU is gone.

    ``of`` names the GPU, empty: the driver itself is asked. ``without`` is what is lacking then; empty: many GPUs do
    not have it, so that only a refusal that says something else is told of. The log has each once.
    """
    try:
        return _answer(call, *arguments)
    except (pynvml.NVMLError, NonsenseError) as error:
        if of and isinstance(error, _GONE):
            raise RefusedError(call, error) from error
        if without or not isinstance(error, _NOT_THERE):
            say_refused(call, of, str(error), without)
    return None


def number(call: Callable[..., int], *arguments: Any, of: str, most: int, without: str = "") -> int | None:
    """A number that the library answers; None where ``said`` has none, and for one below 0 or above ``most``."""
    found = said(call, *arguments, of=of, without=without)
    return None if found is None else in_range(call, found, of, most, without)


def in_range(call: Callable[..., object], found: int, of: str, most: int, without: str = "") -> int | None:
    """A number that the library answered, if it can be."""
    if 0 <= found <= most:
        return int(found)
    _say_nonsense(call, of, f"{found}, where {most} is the most{without and f': {without}'}")
    return None


def told(call: Callable[..., Value], *arguments: Any, of: str, without: str = "") -> Value | None:
    """What the library says of something that does not change: what was answered last goes for an answer."""
    answer = said(call, *arguments, of=of, without=without)
    if answer is None:
        kept: Value | None = _told.get((of, _name(call)))
        return kept
    _told[of, _name(call)] = answer
    return answer


def say_refused(call: Callable[..., object], of: str, error: str, without: str) -> None:
    """Says in the log, once, what a GPU or (``of`` empty) the driver refuses."""
    if (of, _name(call)) not in _refused:
        _refused.add((of, _name(call)))
        logger.warning("%s refuses %s: %s%s", of or "NVIDIA's driver", _name(call), error, without and f": {without}")


def _say_nonsense(call: Callable[..., object], of: str, wrong: str) -> None:
    """Says in the log, once, what a GPU tells that cannot be."""
    key = of, f"{_name(call)} of what cannot be"
    if key not in _refused:
        _refused.add(key)
        logger.warning("%s tells by %s what cannot be: %s", of, _name(call), wrong)


def mig_mode(handle: Any, of: str) -> bool | None:
    """Whether a GPU is in MIG mode; None for one that cannot be: before Ampere, or not for data centres, or with a
    driver before 450. One that does not say is taken for such."""
    modes = told(pynvml.nvmlDeviceGetMigMode, handle, of=of)
    return None if modes is None else bool(modes[0] == pynvml.NVML_DEVICE_MIG_ENABLE)


def each_mig_device(handle: Any, of: str, read: Callable[[Any, str], Value]) -> list[Value]:
    """What ``read`` makes of each MIG device of a GPU in that mode, given its handle and a name for it. One that cannot
    be read is left out, which the log says once."""
    found = []
    count = told(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle, of=of, without="its MIG devices are not known")
    if count is not None and in_range(pynvml.nvmlDeviceGetMaxMigDeviceCount, count, of, MOST_MIG_DEVICES) is None:
        count = MIG_SLICES
    for place in range(count or 0):
        try:
            part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
        except pynvml.NVMLError_NotFound:
            # Nobody has made a MIG device at that place.
            continue
        except pynvml.NVMLError as error:
            if isinstance(error, _GONE):
                raise RefusedError(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, error) from error
            say_refused(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, of, str(error), "its MIG devices are not known")
            continue
        try:
            found.append(read(part, f"{of} MIG device {place}"))
        except RefusedError as error:
            if error.gone:
                raise
            say_refused(read, f"{of} MIG device {place}", str(error), "it is left out")
    return found


def ask_for_events(handle: Any, of: str, events: Any) -> bool:
    """Has a GPU report its faults; whether it does. Some of notebooks and of old generations do not."""
    wanted = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError
    supported = said(pynvml.nvmlDeviceGetSupportedEventTypes, handle, of=of, without=NO_FAULTS)
    if supported is None:
        return False
    try:
        pynvml.nvmlDeviceRegisterEvents(handle, wanted & supported, events)
    except pynvml.NVMLError as error:
        if isinstance(error, _GONE):
            raise RefusedError(pynvml.nvmlDeviceRegisterEvents, error) from error
        say_refused(pynvml.nvmlDeviceRegisterEvents, of, str(error), NO_FAULTS)
        return False
    return True


def read_memory(handle: Any, of: str) -> Memory:
    """Raises RefusedError; with ``not_supported`` for a GPU whose memory is the machine's."""
    newest = pynvml.nvmlDeviceGetMemoryInfo
    try:
        memory = _answer(newest, handle, pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if isinstance(error, _GONE):
            raise RefusedError(newest, error) from error
        # Drivers before 510 do not tell their reserve, and count it as used; WSL2's refuse it, too.
        memory = needed(newest, handle)
        reserved = _told.get((of, "reserved"), 0)
        say_refused(newest, of, f"{error} (its second version)", "what its driver keeps for itself is not known")
        return _memory(of, int(memory.total), reserved, int(memory.used) - reserved)
    found = _memory(of, int(memory.total), int(memory.reserved), int(memory.used))
    _told[of, "reserved"] = found.reserved
    return found


def _memory(of: str, total: int, reserved: int, used: int) -> Memory:
    call = pynvml.nvmlDeviceGetMemoryInfo
    try:
        found, wrong = memory_of(total, reserved, used)
    except NonsenseError as error:
        raise RefusedError(call, error) from error
    if wrong:
        _say_nonsense(call, of, wrong)
    return found


def _answer(call: Callable[..., Value], *arguments: Any) -> Value:
    """Raises pynvml.NVMLError; NonsenseError for what the binding cannot make anything of: text that is none, a list
    that is longer than there was room for."""
    try:
        return call(*arguments)
    except (ValueError, LookupError, ArithmeticError, MemoryError) as error:
        raise NonsenseError(f"its answer cannot be read: {error}") from error


def _name(call: Callable[..., object]) -> str:
    return str(getattr(call, "__name__", call))


def _init_advice(error: pynvml.NVMLError) -> str:
    match error:
        case pynvml.NVMLError_LibraryNotFound():
            if root := os.environ.get(DRIVER_ROOT):
                nowhere = f"{LIBRARY} is neither in the library path nor below {root}, which {DRIVER_ROOT} names"
                return f"{nowhere}; name the folder that has it in one of {', '.join(FOLDERS)}"
            return f"{LIBRARY} is not in the library path; install the driver, or mount it here"
        case pynvml.NVMLError_DriverNotLoaded():
            return "the kernel module is not loaded; load it (modprobe nvidia), then start again"
        case pynvml.NVMLError_LibRmVersionMismatch():
            return "library and kernel module are of different versions; reboot, or load the new module"
        case _:
            return f"{error}; nvidia-smi tells more"
