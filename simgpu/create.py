"""A simulated machine: made and removed."""

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeshare.errors import AlreadyExists, InvalidRequest, NotFound, Unavailable
from simgpu.machine import MIB, SCHEDULING
from simgpu.models import MODELS, Model
from simgpu.native import load

CONTEXT_OVERHEAD_MIB = 256
"""What a bare context takes: 150 to 500 MiB on real GPUs, by model and CUDA version."""
RESERVED_MIB = 0
"""What the driver itself keeps, beyond the model's memory as NVML gives it."""
DRIVERS = {
    "10.2": "440.118.02",
    "11.4": "470.256.02",
    "11.8": "520.61.05",
    "12.0": "525.147.05",
    "12.2": "535.261.03",
    "12.4": "550.163.01",
    "12.8": "570.211.01",
    "13.0": "580.95.05",
}
"""CUDA version → the driver that brought it (NVIDIA, "CUDA Toolkit Release Notes", table of drivers)."""


def create(
    directory: Path,
    *,
    gpus: int = 2,
    model: str = "t4",
    memory_mib: int | None = None,
    scheduling: str = "fifo",
    cuda_version: str = "12.4",
    uuids: Sequence[str] = (),
) -> None:
    """Makes a machine of equal GPUs.

    Raises InvalidRequest for what no machine can be, AlreadyExists where one is, Unavailable where none can
    be made.
    """
    ffi, library = load()
    if model not in MODELS:
        raise InvalidRequest(f"no model is called {model!r}: choose one of {', '.join(MODELS)}")
    if scheduling not in SCHEDULING:
        raise InvalidRequest(f"scheduling {scheduling!r} is not known: choose fifo or timeslice")
    most = int(library.SIMGPU_GPUS)
    if not 1 <= gpus <= most:
        raise InvalidRequest(f"a machine has 1 to {most} GPUs, not {gpus}")
    memory = MODELS[model].memory_mib if memory_mib is None else memory_mib
    if not CONTEXT_OVERHEAD_MIB < memory <= 1 << 24:
        raise InvalidRequest(
            f"a GPU cannot have {memory} MiB of memory: a bare context takes {CONTEXT_OVERHEAD_MIB} MiB"
        )
    plan: Any = ffi.new("struct simgpu_plan *")
    plan.gpu_count = gpus
    plan.scheduling = SCHEDULING.index(scheduling)
    plan.cuda_version = _cuda_number(cuda_version)
    plan.driver_version = DRIVERS[cuda_version].encode()
    for index in range(gpus):
        _describe(plan.models[index], MODELS[model], memory)
        given = uuids[index] if index < len(uuids) else f"GPU-{uuid.uuid4()}"
        plan.uuids[index] = given.encode()
    error = library.simgpu_create(str(directory).encode(), plan)
    if error == errno.EEXIST:
        raise AlreadyExists(f"{directory} already holds a machine: destroy it first, or choose another directory")
    if error:
        raise Unavailable(f"no machine can be made in {directory}: {os.strerror(error)}")


def destroy(directory: Path) -> None:
    """Removes a machine's files; who has it open keeps what it sees. Raises NotFound where there is none."""
    if not (directory / "machine").is_file():
        raise NotFound(f"there is no machine in {directory}")
    (directory / "machine").unlink()
    (directory / "locks").unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()


def _cuda_number(version: str) -> int:
    """ "12.4" → 12040, as the driver numbers it. Raises InvalidRequest."""
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit() and version in DRIVERS):
        raise InvalidRequest(f"CUDA {version!r} is not known here: choose one of {', '.join(DRIVERS)}")
    return int(major) * 1000 + int(minor) * 10


def _describe(to: Any, model: Model, memory_mib: int) -> None:
    to.name = model.name.encode()
    to.architecture = model.architecture.encode()
    to.memory_bytes = memory_mib * MIB
    to.reserved_bytes = RESERVED_MIB * MIB
    to.context_overhead_bytes = CONTEXT_OVERHEAD_MIB * MIB
    to.compute_major, to.compute_minor = model.compute
    to.multiprocessors = model.multiprocessors
    to.threads_per_multiprocessor = model.threads_per_multiprocessor
    to.clock_khz = model.clock_mhz * 1000
    to.memory_clock_khz = model.memory_clock_mhz * 1000
    to.memory_bus_bits = model.memory_bus_bits
    to.l2_bytes = model.l2_kib * 1024
    to.pci_device_id = model.pci_device_id
    to.integrated = model.integrated
    to.ecc = model.ecc
    to.power_limit_mw = model.power_watts * 1000
