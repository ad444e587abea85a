"""How NVIDIA GPUs are, as the driver's management library tells: what one look shows, and faults when they happen."""

import ctypes
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import pynvml

from edgeshare.contract.errors import Unavailable
from edgeshare.contract.health import Answer
from edgeshare.inventory.nvml.facts import count_gpus, id_of, minor_of, temperature_of
from edgeshare.inventory.nvml.library import (
    NO_FAULTS,
    RefusedError,
    ask_for_events,
    end,
    needed,
    number,
    said,
    say_refused,
)
from edgeshare.inventory.nvml.values import MOST_COUNT

logger = logging.getLogger(__name__)

EVENT_WAIT_MS = 1_000
"""The library's wait for an event cannot be interrupted: at most so long until the thread sees that it is to end."""

SHARED_FILES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""Device files without which no GPU can be used for CUDA, beside its own."""


@dataclass(frozen=True)
class Fault:
    """An event of the driver."""

    device_id: str
    """Empty: which GPU it was cannot be told."""
    xid: int
    """0: a memory error that ECC cannot correct."""


@dataclass(frozen=True)
class Vitals:
    """One look at a GPU."""

    files: tuple[str, ...] = ()
    """Its device files, whether or not they are there."""
    answer: Answer | None = None
    """None: there is none."""
    error: str = ""
    """Why not."""
    lost: bool = False
    """It has left the bus."""


class NvmlHealth:
    """This machine's GPUs, from ``open`` to ``close``; only one thread at a time may call it. A GPU once seen is told
    of until ``close``."""

    def __init__(self, tell: Callable[[Fault], None]) -> None:
        """``tell`` is called by a thread of its own."""
        self._tell = tell
        self._ids: dict[int, str] = {}
        self._last: dict[str, Vitals] = {}
        self._registered: dict[int | None, str] = {}
        self._events: Any = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, known: Mapping[int, str]) -> Self:
        """Loads the library and asks it for faults; raises Unavailable where there is no driver. ``known`` are GPUs
        that were seen before, by index: one that is lost cannot say its name."""
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise Unavailable(f"no NVIDIA driver answers here: {error}") from error
        self._events = said(pynvml.nvmlEventSetCreate, without=NO_FAULTS)
        self._stop = threading.Event()
        self._ids = dict(known)
        self._last = {device_id: Vitals() for device_id in known.values()}
        return self

    def close(self) -> None:
        """Lets go of the library, so that a driver can be unloaded; it may be opened again."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        # A driver that is gone may refuse, and there is nothing left to give back then.
        with suppress(pynvml.NVMLError):
            if self._events is not None:
                pynvml.nvmlEventSetFree(self._events)
        end()
        self._ids.clear()
        self._last.clear()
        self._registered.clear()

    def look(self) -> dict[str, Vitals]:
        """Every GPU by its UUID; raises Unavailable where the driver went away."""
        count = count_gpus()
        found: dict[str, Vitals] = {}
        errors: dict[str, RefusedError] = {}
        for index in range(count):
            try:
                handle = needed(pynvml.nvmlDeviceGetHandleByIndex, index)
                self._ids[index] = id_of(handle)
                self._ask_for_events(handle, self._ids[index])
                found[self._ids[index]] = _vitals(handle, self._ids[index])
            except RefusedError as error:
                errors[self._ids.get(index, "")] = error
        for device_id, last in self._last.items():
            if device_id not in found:
                # Whatever comes back under its name is to be asked anew.
                self._registered = {key: each for key, each in self._registered.items() if each != device_id}
                cause = errors.get(device_id)
                found[device_id] = Vitals(
                    files=last.files,
                    error=f"the driver cannot read it: {cause}" if cause else "the driver no longer lists it",
                    lost=cause is not None and cause.lost,
                )
        self._last = found
        return dict(found)

    def _ask_for_events(self, handle: Any, device_id: str) -> None:
        if self._events is None or self._registered.get(_address(handle)) == device_id:
            return
        registered = ask_for_events(handle, device_id, self._events)
        self._registered[_address(handle)] = device_id
        if not registered:
            return
        # Not before a device is registered: the wait on an empty set is an error of some drivers.
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, args=(self._stop,), name="nvml-events", daemon=True)
            self._thread.start()

    def _listen(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                event = pynvml.nvmlEventSetWait_v2(self._events, EVENT_WAIT_MS)
            except pynvml.NVMLError_Timeout:
                continue
            except pynvml.NVMLError as error:
                # What is wrong shows at the next look. A GPU that is lost makes each call fail at once.
                say_refused(pynvml.nvmlEventSetWait_v2, "", str(error), NO_FAULTS)
                stop.wait(EVENT_WAIT_MS / 1_000)
                continue
            # First not asked of the driver: a GPU that has just left the bus cannot say its name.
            device_id = self._registered.get(_address(event.device)) or _name(event.device)
            double_bit = event.eventType == pynvml.nvmlEventTypeDoubleBitEccError
            self._tell(Fault(device_id, 0 if double_bit else int(event.eventData)))


def _name(handle: Any) -> str:
    """The UUID of a GPU; empty where it cannot say."""
    try:
        return id_of(handle)
    except RefusedError:
        return ""


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def _vitals(handle: Any, device_id: str) -> Vitals:
    rows = said(pynvml.nvmlDeviceGetRemappedRows, handle, of=device_id)
    uncorrected = number(
        pynvml.nvmlDeviceGetTotalEccErrors,
        handle,
        pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        pynvml.NVML_VOLATILE_ECC,
        of=device_id,
        most=MOST_COUNT,
    )
    minor = minor_of(handle, device_id)
    answer = Answer(
        energy_mj=number(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle, of=device_id, most=MOST_COUNT),
        uncorrected=uncorrected,
        remap_pending=None if rows is None else bool(rows[2]),
        remap_failed=None if rows is None else bool(rows[3]),
        temperature_c=temperature_of(handle, device_id),
    )
    return Vitals((*(() if minor is None else (f"/dev/nvidia{minor}",)), *SHARED_FILES), answer)
