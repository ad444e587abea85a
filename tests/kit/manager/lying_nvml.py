"""Asks NVML all that the product asks, with one of its functions that lies after another, each in a process of its own.

``python -m tests.kit.manager.lying_nvml ROOT`` prints a line for each case: the lie, what was found, and what the log
said.
"""

import ctypes
import itertools
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from edgeshare.inventory.nvml import device_health as nvml_health
from tests.kit.manager.asks_nvml import ask

HUGE = (1 << 32) - 1
HUGER = (1 << 64) - 1

Lie = Callable[..., int | None]
"""Given what the function was, after the real one has answered: what comes out is written over. Returns its
status, where that is another."""

numbers = itertools.count()


def number(value: int) -> Lie:
    """The last argument is a pointer to one."""

    def lie(*arguments: Any) -> None:
        arguments[-1]._obj.value = value

    return lie


def fields(**values: int | bytes) -> Lie:
    """The last argument is a pointer to a structure."""

    def lie(*arguments: Any) -> None:
        for name, value in values.items():
            setattr(arguments[-1]._obj, name, value)

    return lie


def text(value: bytes, place: int = 1) -> Lie:
    def lie(*arguments: Any) -> None:
        arguments[place].value = value

    return lie


def another_each_time(_: Any, uuid: Any, *__: Any) -> None:
    uuid.value = b"GPU-%08d" % next(numbers)


def more_than_there_is_room_for(_: Any, count: Any, processes: Any) -> int:
    count._obj.value = 1 if processes is None else 1 << 20
    return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE if processes is None else pynvml.NVML_SUCCESS)


def more_memory_than_there_is(_: Any, count: Any, processes: Any) -> int:
    count._obj.value = 1
    if processes is None:
        return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
    processes[0].pid, processes[0].usedGpuMemory = 1, HUGER - 1
    return int(pynvml.NVML_SUCCESS)


class ClockSetBack:
    """One process, busy at each look; stamped by a clock that is set back after the first."""

    STAMPS_US = (5_000_000, 1_000_000, 1_100_000)

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        """By the handle: how many of the stamps the asker knows."""

    def __call__(self, handle: Any, samples: Any, count: Any, since: Any) -> int:
        gpu, since_us = int(ctypes.cast(handle, ctypes.c_void_p).value or 0), since.value
        seen = self._seen.get(gpu, 0)
        if seen + 1 < len(self.STAMPS_US) and since_us == self.STAMPS_US[seen]:
            self._seen[gpu] = seen = seen + 1
        stamp_us = self.STAMPS_US[seen]
        if stamp_us <= since_us:
            return int(pynvml.NVML_ERROR_NOT_FOUND)
        count._obj.value = 1
        if samples is None:
            return int(pynvml.NVML_ERROR_INSUFFICIENT_SIZE)
        samples[0].pid, samples[0].timeStamp, samples[0].smUtil = 1, stamp_us, 50
        return int(pynvml.NVML_SUCCESS)


LIES: dict[str, tuple[str, Lie]] = {
    "four billion GPUs": ("nvmlDeviceGetCount_v2", number(HUGE)),
    "no GPU": ("nvmlDeviceGetCount_v2", number(0)),
    "one GPU fewer": ("nvmlDeviceGetCount_v2", number(1)),
    "more memory than 64 bits hold": ("nvmlDeviceGetMemoryInfo_v2", fields(total=HUGER)),
    "no memory": ("nvmlDeviceGetMemoryInfo_v2", fields(total=0)),
    "more used than there is": ("nvmlDeviceGetMemoryInfo_v2", fields(used=HUGER)),
    "more reserved than there is": ("nvmlDeviceGetMemoryInfo_v2", fields(reserved=HUGER)),
    "a UUID that is no text": ("nvmlDeviceGetUUID", text(b"GPU-\xff\xfe")),
    "a UUID that is empty": ("nvmlDeviceGetUUID", text(b"")),
    "a UUID of several lines": ("nvmlDeviceGetUUID", text(b"GPU-1\n2026 all is well")),
    "a UUID that is a path": ("nvmlDeviceGetUUID", text(b"../../etc/passwd")),
    "one UUID for all": ("nvmlDeviceGetUUID", text(b"GPU-1")),
    "a UUID that is another each time": ("nvmlDeviceGetUUID", another_each_time),
    "a name that is no text": ("nvmlDeviceGetName", text(b"NVIDIA \xff\xfe")),
    "a name of several lines": ("nvmlDeviceGetName", text(b"NVIDIA\n\x1b[2J\x07")),
    "a load of billions": ("nvmlDeviceGetUtilizationRates", fields(gpu=HUGE, memory=HUGE)),
    "a heat of billions": ("nvmlDeviceGetTemperature", number(HUGE)),
    "a power of billions": ("nvmlDeviceGetPowerUsage", number(HUGE)),
    "energy without end": ("nvmlDeviceGetTotalEnergyConsumption", number(HUGER)),
    "errors without end": ("nvmlDeviceGetTotalEccErrors", number(HUGER)),
    "a version that is no text": ("nvmlSystemGetDriverVersion", text(b"\xff\xfe", 0)),
    "a CUDA of less than none": ("nvmlSystemGetCudaDriverVersion_v2", number(-1)),
    "a device file of billions": ("nvmlDeviceGetMinorNumber", number(HUGE)),
    "an address that is none": ("nvmlDeviceGetPciInfo_v3", fields(busId=b"no:where")),
    "an address that is no text": ("nvmlDeviceGetPciInfo_v3", fields(busId=b"\xff\xfe:00")),
    "four billion MIG devices": ("nvmlDeviceGetMaxMigDeviceCount", number(HUGE)),
    "more processes than there was room for": (
        "nvmlDeviceGetComputeRunningProcesses_v2",
        more_than_there_is_room_for,
    ),
    "a process with more memory than there is": (
        "nvmlDeviceGetComputeRunningProcesses_v2",
        more_memory_than_there_is,
    ),
    "a clock that was set back": ("nvmlDeviceGetProcessUtilization", ClockSetBack()),
}
"""By what is wrong: the function of NVML that says it, and how."""


def lying(name: str, lie: Lie) -> Callable[[str], Callable[..., int]]:
    real = pynvml._nvmlGetFunctionPointer

    def function(asked: str) -> Callable[..., int]:
        found: Callable[..., int] = real(asked)

        def call(*arguments: Any) -> int:
            status = found(*arguments)
            told = lie(*arguments)
            return status if told is None else told

        return call if asked == name else found

    return function


def case(root: Path, what: str) -> None:
    """Prints what comes of one lie; to be called in a process that ends with it."""
    lines: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    if what:
        pynvml._nvmlGetFunctionPointer = lying(*LIES[what])
    told: dict[str, Any] = {"lie": what}
    try:
        told["found"] = ask(root, lambda: None)
    except Exception:
        told["traceback"] = traceback.format_exc()
    print(json.dumps(told | {"log": lines}), flush=True)


def main() -> None:
    nvml_health.EVENT_WAIT_MS = 1
    for what in ("", *LIES):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                case(Path(sys.argv[1]), what)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


if __name__ == "__main__":
    main()
