"""NVIDIA GPUs, as the driver's management library lists them."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pynvml

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.health import APPLICATION_XIDS
from edgeshare.contract.units import MIB
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
from edgeshare.inventory.nvml.facts import count_gpus, id_of, minor_of, name_of, pci_of, temperature_of
from edgeshare.inventory.nvml.library import (
    NO_FAULTS,
    RefusedError,
    ask_for_events,
    begin,
    each_mig_device,
    end,
    in_range,
    mig_mode,
    needed,
    number,
    read_memory,
    said,
    say_refused,
    told,
)
from edgeshare.inventory.nvml.values import MOST_COUNT, MOST_MEMORY_BYTES, MOST_PERCENT
from edgeshare.inventory.tree import Tree

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
        self._left_out: dict[int, str] = {}
        self._events: Any = None

    def open(self) -> Self:
        """Loads the library and asks for fault events; raises, with one line, NoDriver where there is none and nothing
        that would need it, and Unavailable where it does not answer."""
        begin(self._tree)
        try:
            self._events = said(pynvml.nvmlEventSetCreate, without=NO_FAULTS)
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
        count = count_gpus()
        self._read_events()
        lost: dict[str, str] = {}
        for index in range(count):
            try:
                gpu = self._read_gpu(index)
            except RefusedError as error:
                if index in self._known:
                    lost[self._known[index].id] = f"the driver cannot read it: {error}"
                elif self._left_out.get(index) != str(error):
                    self._left_out[index] = str(error)
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
            return read_memory(self._handles[device_id], device_id).used // MIB
        except (KeyError, RefusedError):
            return 0

    def processes(self, device_id: str) -> list[DeviceProcess] | None:
        """The processes that have a context on a device; None for a device that cannot be read, or does not say."""
        try:
            found = _read_processes(self._handles[device_id], device_id)
        except (KeyError, RefusedError):
            return None
        return None if found is None else [DeviceProcess(each.pid, _memory_of(each)) for each in found]

    def active(self, device_id: str) -> Mapping[int, int]:
        """Of a MIG device and of a virtual GPU the driver does not say it."""
        call = pynvml.nvmlDeviceGetProcessUtilization
        since_us = self._sampled_us.get(device_id, 0)
        try:
            # Where nothing is newer than the last, the clock that stamps them may have been set back.
            samples = self._samples(device_id, since_us) or (self._samples(device_id, 0) if since_us else [])
        except (KeyError, RefusedError):
            return {}
        self._sampled_us[device_id] = max((sample.timeStamp for sample in samples), default=since_us)
        fresh = [(each.pid, each.smUtil) for each in samples if each.timeStamp > since_us]
        return {pid: used for pid, percent in fresh if (used := in_range(call, percent, device_id, MOST_PERCENT))}

    def _samples(self, device_id: str, since_us: int) -> list[Any]:
        handle = self._handles[device_id]
        return list(said(pynvml.nvmlDeviceGetProcessUtilization, handle, since_us, of=device_id) or ())

    def busy_percent(self, device_id: str) -> int | None:
        """Of the last sixth of a second to a second (NVML API Reference, nvmlUtilization_t); None for a MIG device, of
        which the driver does not say it."""
        if device_id in self._parents():
            return None
        try:
            rates = said(pynvml.nvmlDeviceGetUtilizationRates, self._handles[device_id], of=device_id)
        except (KeyError, RefusedError):
            return None
        return rates and in_range(pynvml.nvmlDeviceGetUtilizationRates, rates.gpu, device_id, MOST_PERCENT)

    def temperature_c(self, device_id: str) -> float | None:
        """How hot a GPU is, for a MIG device that which it is a part of; None where it cannot be read."""
        try:
            handle = self._handles[self._parents().get(device_id, device_id)]
            celsius = temperature_of(handle, device_id)
        except (KeyError, RefusedError):
            return None
        return None if celsius is None else float(celsius)

    def energy_mj(self, device_id: str) -> int | None:
        """None for a MIG device, too: the driver says it of the whole GPU."""
        if device_id in self._parents():
            return None
        try:
            handle = self._handles[device_id]
            return number(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle, of=device_id, most=MOST_COUNT)
        except (KeyError, RefusedError):
            return None

    def _parents(self) -> dict[str, str]:
        """By the id of each MIG device, that of the GPU of which it is a part."""
        return {partition.id: gpu.id for gpu in self._known.values() for partition in gpu.partitions}

    def _read_gpu(self, index: int) -> Gpu | None:
        """None for a GPU whose memory is the host's: a Jetson's, which the inventory of that name lists."""
        handle = needed(pynvml.nvmlDeviceGetHandleByIndex, index)
        device_id = id_of(handle)
        try:
            memory = read_memory(handle, device_id)
        except RefusedError as error:
            if not error.not_supported:
                raise
            if index not in self._integrated:
                logger.info("GPU %d (%s) has no memory of its own and is not listed by NVML", index, device_id)
            self._integrated.add(index)
            return None
        if device_id not in self._handles and self._events is not None:
            ask_for_events(handle, device_id, self._events)
        self._handles[device_id] = handle
        minor = minor_of(handle, device_id)
        pci = pci_of(handle, device_id, "its NUMA node is not known")
        partitioned = bool(mig_mode(handle, device_id))
        return Gpu(
            id=device_id,
            index=index,
            minor=minor,
            model=name_of(handle, device_id),
            total_bytes=memory.total,
            reserved_bytes=memory.reserved,
            numa_node=-1 if pci is None else self._read_numa_node(pci.bus_id),
            partitioned=partitioned,
            partitions=tuple(self._read_partitions(handle, device_id, minor)) if partitioned else (),
        )

    def _read_partitions(self, gpu: Any, gpu_id: str, minor: int | None) -> list[Partition]:
        def read(handle: Any, _: str) -> Partition:
            device_id = id_of(handle)
            memory = read_memory(handle, device_id)
            self._handles[device_id] = handle
            return Partition(
                id=device_id,
                model=name_of(handle, device_id),
                total_bytes=memory.total,
                reserved_bytes=memory.reserved,
                capabilities=self._read_capabilities(handle, device_id, minor),
            )

        return each_mig_device(gpu, gpu_id, read)

    def _read_capabilities(self, handle: Any, device_id: str, gpu_minor: int | None) -> tuple[int, ...]:
        without = "its device files are not known"
        gpu_instance = told(pynvml.nvmlDeviceGetGpuInstanceId, handle, of=device_id, without=without)
        compute_instance = told(pynvml.nvmlDeviceGetComputeInstanceId, handle, of=device_id, without=without)
        if gpu_minor is None or gpu_instance is None or compute_instance is None:
            return ()
        files = access_files(gpu_minor, gpu_instance, compute_instance)
        minors = (capability_minor(self._tree.read(file)) for file in files)
        return tuple(minor for minor in minors if minor is not None)

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

    def _read_events(self) -> None:
        if self._events is None:
            return
        for _ in range(EVENTS_PER_READ):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, 0)
                device_id = id_of(event.device)
            except (pynvml.NVMLError, RefusedError):
                # Timeout: nothing more to read. Anything else shows when the device itself is read.
                return
            if event.eventType == pynvml.nvmlEventTypeDoubleBitEccError:
                self._causes.setdefault(device_id, "uncorrectable memory error (double-bit ECC)")
            elif event.eventData not in APPLICATION_XIDS:
                self._causes.setdefault(device_id, f"XID {event.eventData}")


def _memory_of(process: Any) -> int | None:
    used: int | None = process.usedGpuMemory
    return used if used is not None and used < MOST_MEMORY_BYTES else None


def _read_processes(handle: Any, of: str) -> list[Any] | None:
    # The second version first: what the third tells besides is of no use here, and drivers from 535.43 to 535.86 have
    # it in a larger structure than any caller expects. (XuehaiPan/nvitop, pull request 79.)
    call = pynvml.nvmlDeviceGetComputeRunningProcesses_v2
    found = said(call, handle, of=of)
    if found is None:
        call = pynvml.nvmlDeviceGetComputeRunningProcesses_v3
        found = said(call, handle, of=of, without="which processes use it is not known")
    if any(_memory_of(process) is None for process in found or ()):
        # Under Windows' driver model, WSL2 too. (NVML API Reference, nvmlProcessInfo_t.)
        say_refused(call, of, "no memory of each process", "what the driver takes for a program is not counted")
    return found
