"""NVIDIA GPUs, as the driver's management library lists them. The one importer of its Python binding."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pynvml

from edgeshare.devices import Device
from edgeshare.errors import Unavailable
from edgeshare.units import MIB

logger = logging.getLogger(__name__)

CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
"""Device nodes that every CUDA program needs beside its GPU's own; the last two are not there everywhere."""

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""XID events that a program's own mistake causes and that leave the GPU well.
Source: NVIDIA, "XID Errors", the catalogue's entries whose action is to look at the application."""

EVENTS_PER_READ = 64
"""How many events one look at the devices takes in, so that a storm of them cannot hold it for ever."""


@dataclass(frozen=True)
class DeviceProcess:
    """A process with a context on a device. Its pid is in the host's pid namespace."""

    pid: int
    memory_bytes: int
    """0 where the driver does not say."""


class NvmlInventory:
    """This machine's GPUs. Open between ``open`` and ``close``, or as a context manager; not for several
    threads at once. A GPU once seen stays listed: when it is lost, it is listed as unhealthy, with the
    cause."""

    def __init__(self) -> None:
        self._known: dict[int, Device] = {}
        self._handles: dict[str, Any] = {}
        self._causes: dict[str, str] = {}
        self._events: Any = None

    def open(self) -> Self:
        """Loads the library and asks for fault events; raises Unavailable, with one line, where there is
        no driver."""
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise Unavailable(f"no NVIDIA driver answers here: {_init_advice(error)}") from error
        try:
            self._events = pynvml.nvmlEventSetCreate()
            self.devices()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Lets go of the library; the inventory may be opened again."""
        if self._events is not None:
            pynvml.nvmlEventSetFree(self._events)
        self._events = None
        self._known.clear()
        self._handles.clear()
        self._causes.clear()
        pynvml.nvmlShutdown()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def devices(self) -> list[Device]:
        """Every GPU by index, with its health as of now; raises Unavailable where the driver went away."""
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise Unavailable(f"the NVIDIA driver no longer lists its GPUs: {error}") from error
        self._read_events()
        lost: dict[int, str] = {}
        for index in range(count):
            try:
                device = self._read_device(index)
            except pynvml.NVMLError as error:
                if index not in self._known:
                    logger.warning("GPU %d cannot be read and is left out: %s", index, error)
                lost[index] = f"the driver cannot read it: {error}"
            else:
                self._known[index] = device
        for index in self._known:
            if index >= count:
                lost[index] = "the driver no longer lists it"
        return [self._with_health(device, lost.get(index)) for index, device in sorted(self._known.items())]

    def memory_used_mib(self, device_id: str) -> int:
        """Memory in use on a device, the driver's reserve excluded; 0 for a device that cannot be read."""
        try:
            memory, _ = _read_memory(self._handles[device_id])
        except pynvml.NVMLError:
            return 0
        return int(memory.used) // MIB

    def processes(self, device_id: str) -> list[DeviceProcess]:
        """The processes that have a context on a device; none for a device that cannot be read."""
        try:
            found = _read_processes(self._handles[device_id])
        except pynvml.NVMLError:
            return []
        return [DeviceProcess(process.pid, process.usedGpuMemory or 0) for process in found]

    def _read_device(self, index: int) -> Device:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        device_id = pynvml.nvmlDeviceGetUUID(handle)
        if device_id not in self._handles:
            self._ask_for_events(handle)
        self._handles[device_id] = handle
        memory, reserved_bytes = _read_memory(handle)
        minor = pynvml.nvmlDeviceGetMinorNumber(handle)
        nodes = (f"/dev/nvidia{minor}", *CONTROL_NODES)
        return Device(
            id=device_id,
            index=index,
            model=pynvml.nvmlDeviceGetName(handle),
            memory_mib=(int(memory.total) - reserved_bytes) // MIB,
            numa_node=_read_numa_node(pynvml.nvmlDeviceGetPciInfo(handle).busId),
            paths=tuple(node for node in nodes if Path(node).exists()),
        )

    def _with_health(self, device: Device, lost: str | None) -> Device:
        # What was lost may come back; an XID or ECC fault stays until the driver, or this process, starts
        # anew.
        cause = lost or self._causes.get(device.id, "")
        return replace(device, healthy=not cause, cause=cause)

    def _ask_for_events(self, handle: Any) -> None:
        wanted = pynvml.nvmlEventTypeXidCriticalError | pynvml.nvmlEventTypeDoubleBitEccError
        try:
            supported = pynvml.nvmlDeviceGetSupportedEventTypes(handle)
            pynvml.nvmlDeviceRegisterEvents(handle, wanted & supported, self._events)
        except pynvml.NVMLError_NotSupported:
            # Some GPUs of notebooks and of old generations: then only a lost GPU is noticed.
            logger.info("GPU %s reports no fault events", pynvml.nvmlDeviceGetUUID(handle))

    def _read_events(self) -> None:
        for _ in range(EVENTS_PER_READ):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
                device_id = pynvml.nvmlDeviceGetUUID(event.device)
            except pynvml.NVMLError:
                # Timeout: nothing more to read. Anything else shows when the device itself is read.
                return
            if event.eventType == pynvml.nvmlEventTypeDoubleBitEccError:
                self._causes.setdefault(device_id, "uncorrectable memory error (double-bit ECC)")
            elif event.eventData not in APPLICATION_XIDS:
                self._causes.setdefault(device_id, f"XID {event.eventData}")


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


def _read_memory(handle: Any) -> tuple[Any, int]:
    """(memory information, bytes that the driver keeps for itself)."""
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    except pynvml.NVMLError_FunctionNotFound:
        # Drivers before 510 do not tell their reserve, and count it as used.
        return pynvml.nvmlDeviceGetMemoryInfo(handle), 0
    return memory, int(memory.reserved)


def _read_processes(handle: Any) -> list[Any]:
    newest: Callable[[Any], list[Any]] = pynvml.nvmlDeviceGetComputeRunningProcesses_v3
    try:
        return newest(handle)
    except pynvml.NVMLError_FunctionNotFound:
        # Drivers before 510.
        older: Callable[[Any], list[Any]] = pynvml.nvmlDeviceGetComputeRunningProcesses_v2
        return older(handle)


def _read_numa_node(bus_id: str) -> int:
    # NVML writes the PCI domain with eight digits, sysfs with four.
    domain, _, rest = bus_id.lower().partition(":")
    path = Path("/sys/bus/pci/devices") / f"{domain[-4:]}:{rest}" / "numa_node"
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        # A virtual machine or a container without sysfs: it does not say.
        return -1
