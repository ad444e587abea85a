"""How busy NVIDIA GPUs are, as the driver's management library tells."""

import logging
from dataclasses import dataclass
from typing import Any

import pynvml

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.nvml.facts import count_gpus, id_of, name_of, temperature_of
from edgeshare.inventory.nvml.library import (
    RefusedError,
    begin,
    each_mig_device,
    end,
    in_range,
    mig_mode,
    needed,
    number,
    read_memory,
    said,
)
from edgeshare.inventory.nvml.values import MOST_MW, MOST_PERCENT
from edgeshare.inventory.tree import Tree

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class GpuUsage:
    """One look at a GPU or MIG device. None: it, or the driver, does not say."""

    id: str
    index: int
    """A GPU's own; a MIG device's is its GPU's."""
    model: str
    parent: str = ""
    load_percent: int | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    """Less the driver's reserve. None for a GPU whose memory is the machine's."""
    temperature_c: int | None = None
    power_mw: int | None = None


class NvmlUsage:
    """This machine's GPUs, looked at again and again; only one thread at a time may call it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._open = False

    def look(self) -> list[GpuUsage]:
        """Every GPU, and the MIG devices that it is divided into; one that is lost is left out. Loads the library where
        that has not been done; raises NoDriver where there is none and nothing that would need it, Unavailable where it
        does not answer."""
        if not self._open:
            begin(self._tree)
            self._open = True
        try:
            count = count_gpus()
        except Unavailable:
            # A driver that was loaded anew wants the library to be, too.
            self.close()
            raise
        found: list[GpuUsage] = []
        for index in range(count):
            try:
                found += _look_at(index)
            except RefusedError as error:
                logger.debug("GPU %d cannot be read: %s", index, error)
        return found

    def close(self) -> None:
        """Lets go of the library, so that a driver can be unloaded; the next look loads it again."""
        if self._open:
            self._open = False
            end()


def _look_at(index: int) -> list[GpuUsage]:
    handle = needed(pynvml.nvmlDeviceGetHandleByIndex, index)
    device_id = id_of(handle)
    # Not told of a GPU in MIG mode, nor of a MIG device. (NVML API Reference, nvmlDeviceGetUtilizationRates.)
    call = pynvml.nvmlDeviceGetUtilizationRates
    rates = said(call, handle, of=device_id)
    load_percent = None if rates is None else in_range(call, rates.gpu, device_id, MOST_PERCENT)
    used_bytes, total_bytes = _memory(handle, device_id)
    whole = GpuUsage(
        id=device_id,
        index=index,
        model=name_of(handle, device_id),
        load_percent=load_percent,
        memory_used_bytes=used_bytes,
        memory_total_bytes=total_bytes,
        temperature_c=temperature_of(handle, device_id),
        power_mw=number(pynvml.nvmlDeviceGetPowerUsage, handle, of=device_id, most=MOST_MW),
    )
    if not mig_mode(handle, device_id):
        return [whole]
    return [whole, *each_mig_device(handle, device_id, lambda part, name: _part(part, name, whole))]


def _part(handle: Any, name: str, gpu: GpuUsage) -> GpuUsage:
    device_id = id_of(handle)
    used_bytes, total_bytes = _memory(handle, name)
    return GpuUsage(
        id=device_id,
        index=gpu.index,
        model=name_of(handle, name),
        parent=gpu.id,
        memory_used_bytes=used_bytes,
        memory_total_bytes=total_bytes,
    )


def _memory(handle: Any, of: str) -> tuple[int | None, int | None]:
    """In use, and in total."""
    try:
        memory = read_memory(handle, of)
    except RefusedError as error:
        if error.gone:
            raise
        return None, None
    return memory.used, memory.total - memory.reserved
