"""NVIDIA GPUs, as the driver's management library lists them."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pynvml

from edgeshare.devices import Device
from edgeshare.errors import Unavailable
from edgeshare.health import APPLICATION_XIDS
from edgeshare.inventory.gpus import (
    Gpu,
    Partition,
    access_files,
    capability_minor,
    capability_nodes,
    devices_of,
    nodes_of,
    pci_folder,
)
from edgeshare.inventory.interface import DeviceProcess
from edgeshare.inventory.nvml_library import begin, end, mig_devices, mig_mode, name_of, read_memory
from edgeshare.inventory.tree import Tree
from edgeshare.units import MIB

logger = logging.getLogger(__name__)

EVENTS_PER_READ = 64
"""How many events one look at the devices takes in, so that a storm of them cannot hold it for ever."""


class NvmlInventory:
    """This machine's GPUs. Open between ``open`` and ``close``, or as a context manager; not for several
    threads at once. A GPU once seen stays listed: when it is lost, it is listed as unhealthy, with the
    cause."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._tree = Tree(root)
        self._known: dict[int, Gpu] = {}
        self._handles: dict[str, Any] = {}
        self._causes: dict[str, str] = {}
        self._integrated: set[int] = set()
        self._sampled_us: dict[str, int] = {}
        """Of the newest sample of what processes do that was seen; by device id, in the driver's time."""
        self._events: Any = None

    def open(self) -> Self:
        """Loads the library and asks for fault events; raises, with one line, NoDriver where there is none and nothing
        that would need it, and Unavailable where it does not answer."""
        begin(self._tree)
        try:
            self._events = pynvml.nvmlEventSetCreate()
            self.devices()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Lets go of the library; the inventory may be opened again."""
        # A driver that is gone may refuse, and there is nothing left to give back then.
        with suppress(pynvml.NVMLError):
            if self._events is not None:
                pynvml.nvmlEventSetFree(self._events)
        end()
        self._events = None
        self._known.clear()
        self._handles.clear()
        self._causes.clear()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def devices(self) -> list[Device]:
        """Every GPU by index, with its health as of now; in place of one in MIG mode its MIG devices. Raises
        Unavailable where the driver went away."""
        try:
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as error:
            raise Unavailable(f"the NVIDIA driver no longer lists its GPUs: {error}") from error
        self._read_events()
        lost: dict[str, str] = {}
        for index in range(count):
            try:
                gpu = self._read_gpu(index)
            except pynvml.NVMLError as error:
                if index in self._known:
                    lost[self._known[index].id] = f"the driver cannot read it: {error}"
                else:
                    logger.warning("GPU %d cannot be read and is left out: %s", index, error)
            else:
                if gpu is not None:
                    self._known[index] = gpu
        for index, gpu in self._known.items():
            if index >= count:
                lost[gpu.id] = "the driver no longer lists it"
        return [self._with_health(device, lost) for device in devices_of(self._known.values(), self._nodes_there())]

    def memory_used_mib(self, device_id: str) -> int:
        """Memory in use on a device, the driver's reserve excluded; 0 for a device that cannot be read."""
        try:
            memory, _ = read_memory(self._handles[device_id])
        except (KeyError, pynvml.NVMLError):
            return 0
        return int(memory.used) // MIB

    def processes(self, device_id: str) -> list[DeviceProcess]:
        """The processes that have a context on a device; none for a device that cannot be read."""
        try:
            found = _read_processes(self._handles[device_id])
        except (KeyError, pynvml.NVMLError):
            return []
        return [DeviceProcess(process.pid, process.usedGpuMemory or 0) for process in found]

    def active(self, device_id: str) -> frozenset[int]:
        """Of a MIG device and of a virtual GPU the driver does not say it."""
        since_us = self._sampled_us.get(device_id, 0)
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(self._handles[device_id], since_us)
        except (KeyError, pynvml.NVMLError):
            return frozenset()
        self._sampled_us[device_id] = max((sample.timeStamp for sample in samples), default=since_us)
        return frozenset(sample.pid for sample in samples if sample.smUtil and sample.timeStamp > since_us)

    def busy_percent(self, device_id: str) -> int | None:
        """Of the last sixth of a second to a second (NVML API Reference, nvmlUtilization_t); None for a MIG device, of
        which the driver does not say it."""
        if any(partition.id == device_id for gpu in self._known.values() for partition in gpu.partitions):
            return None
        try:
            return int(pynvml.nvmlDeviceGetUtilizationRates(self._handles[device_id]).gpu)
        except (KeyError, pynvml.NVMLError):
            return None

    def temperature_c(self, device_id: str) -> float | None:
        """How hot a GPU is, for a MIG device that which it is a part of; None where it cannot be read."""
        gpus = {partition.id: gpu.id for gpu in self._known.values() for partition in gpu.partitions}
        try:
            handle = self._handles[gpus.get(device_id, device_id)]
            return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
        except (KeyError, pynvml.NVMLError):
            return None

    def _read_gpu(self, index: int) -> Gpu | None:
        """None for a GPU whose memory is the host's: a Jetson's, which the inventory of that name lists."""
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        device_id = pynvml.nvmlDeviceGetUUID(handle)
        try:
            memory, reserved_bytes = read_memory(handle)
        except pynvml.NVMLError_NotSupported:
            if index not in self._integrated:
                logger.info("GPU %d (%s) has no memory of its own and is not listed by NVML", index, device_id)
            self._integrated.add(index)
            return None
        if device_id not in self._handles:
            self._ask_for_events(handle)
        self._handles[device_id] = handle
        minor = pynvml.nvmlDeviceGetMinorNumber(handle)
        partitioned = bool(mig_mode(handle))
        return Gpu(
            id=device_id,
            index=index,
            minor=minor,
            model=name_of(handle),
            total_bytes=int(memory.total),
            reserved_bytes=reserved_bytes,
            numa_node=self._read_numa_node(pynvml.nvmlDeviceGetPciInfo(handle).busId),
            partitioned=partitioned,
            partitions=tuple(self._read_partitions(handle, minor)) if partitioned else (),
        )

    def _read_partitions(self, gpu: Any, minor: int) -> list[Partition]:
        found = []
        for handle in mig_devices(gpu):
            device_id = pynvml.nvmlDeviceGetUUID(handle)
            self._handles[device_id] = handle
            memory, reserved_bytes = read_memory(handle)
            files = access_files(
                minor, pynvml.nvmlDeviceGetGpuInstanceId(handle), pynvml.nvmlDeviceGetComputeInstanceId(handle)
            )
            minors = (capability_minor(self._tree.read(file)) for file in files)
            found.append(
                Partition(
                    id=device_id,
                    model=name_of(handle),
                    total_bytes=int(memory.total),
                    reserved_bytes=reserved_bytes,
                    capabilities=tuple(minor for minor in minors if minor is not None),
                )
            )
        return found

    def _nodes_there(self) -> set[str]:
        named = {node for gpu in self._known.values() for node in nodes_of(gpu)}
        for gpu in self._known.values():
            named.update(node for partition in gpu.partitions for node in capability_nodes(partition))
        return {node for node in named if self._tree.exists(node)}

    def _read_numa_node(self, bus_id: str) -> int:
        try:
            number = self._tree.number(f"{pci_folder(bus_id)}/numa_node")
        except Unavailable as error:
            # No reason to do without a GPU.
            logger.debug("%s", error)
            number = None
        # A virtual machine or a container without sysfs: it does not say.
        return -1 if number is None else number

    def _with_health(self, device: Device, lost: dict[str, str]) -> Device:
        # What was lost may come back; an XID or ECC fault stays until the driver, or this process, starts
        # anew. A fault of a GPU is one of all its MIG devices.
        gpu = device.parent or device.id
        cause = lost.get(gpu) or self._causes.get(gpu, "")
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


def _read_processes(handle: Any) -> list[Any]:
    newest: Callable[[Any], list[Any]] = pynvml.nvmlDeviceGetComputeRunningProcesses_v3
    try:
        return newest(handle)
    except pynvml.NVMLError_FunctionNotFound:
        # Drivers before 510.
        older: Callable[[Any], list[Any]] = pynvml.nvmlDeviceGetComputeRunningProcesses_v2
        return older(handle)
