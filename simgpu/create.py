"""A simulated machine: made and removed."""

import errno
import os
import shutil
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NotFound, Unavailable
from edgeshare.contract.units import MIB
from simgpu.machine import DEVICE_FILES, SCHEDULING, device_file
from simgpu.models import MODELS, Model
from simgpu.native import load
from simgpu.nvml_profiles import ANSWERS, NVML_PROFILES, NvmlProfile
from simgpu.paces import PACES, Pace
from simgpu.readings import MADE

CONTEXT_OVERHEAD_MIB = 256
"""What a bare context takes: 150 to 500 MiB on real GPUs, by model and CUDA version."""
RESERVED_MIB = 0
"""What the driver itself keeps, beyond the model's memory as NVML gives it."""
MIG_DEVICES_MAX = 7
DRIVERS = {
    "10.2": "440.118.02",
    "11.4": "470.256.02",
    "11.8": "520.61.05",
    "12.0": "525.147.05",
    "12.2": "535.261.03",
    "12.4": "550.163.01",
    "12.6": "560.35.05",
    "12.8": "570.211.01",
    "13.0": "580.95.05",
}
"""CUDA version → the driver that brought it (NVIDIA, "CUDA Toolkit Release Notes", table of drivers)."""

CUDA_VERSION = "12.4"
"""Where none is named."""


def create(
    directory: Path,
    *,
    gpus: int = 2,
    model: str | Sequence[str] = "t4",
    memory_mib: int | None = None,
    reserved_mib: int = RESERVED_MIB,
    scheduling: str = "fifo",
    cuda_version: str | None = None,
    uuids: Sequence[str] = (),
    mig: Mapping[int, Sequence[str]] | None = None,
    pace: str | Pace | None = None,
    overlap: bool = False,
    nvml: str | NvmlProfile | None = None,
) -> None:
    """Makes a machine of equal GPUs, or with one model named for each.

    ``mig``: index of a GPU that is in MIG mode → the profiles of its MIG devices. ``pace``: what calls and switches of
    contexts cost; None: nothing. ``overlap``: within a context a GPU runs kernels side by side as far as they
    have room, and copies of both directions beside them; without, one thing at a time. ``nvml``: what functions of NVML
    answer in place of what they would; None: nothing. ``cuda_version``: None: that of ``nvml``, or else CUDA_VERSION.

    Raises InvalidRequest for what no machine can be, AlreadyExists where one is, Unavailable where none can
    be made.
    """
    ffi, library = load()
    models = _models([model] if isinstance(model, str) else model, gpus)
    if scheduling not in SCHEDULING:
        raise InvalidRequest(f"scheduling {scheduling!r} is not known: choose fifo or timeslice")
    most = int(library.SIMGPU_GPUS)
    if not 1 <= gpus <= most:
        raise InvalidRequest(f"a machine has 1 to {most} GPUs, not {gpus}")
    memories = [each.memory_mib if memory_mib is None else memory_mib for each in models]
    _check_memory(memories, reserved_mib)
    if any(index not in range(gpus) for index in mig or {}):
        raise InvalidRequest(f"a machine of {gpus} GPUs has none numbered {max(mig or {})} to be divided")
    plan: Any = ffi.new("struct simgpu_plan *")
    plan.gpu_count = gpus
    plan.scheduling = SCHEDULING.index(scheduling)
    plan.overlap = overlap
    profile = _profile(nvml, cuda_version)
    cuda_version = cuda_version or profile.cuda_version or CUDA_VERSION
    plan.cuda_version = _cuda_number(cuda_version)
    plan.driver_version = (profile.driver_version or DRIVERS[cuda_version]).encode()
    _set_pace(plan.pace, pace)
    _set_nvml(plan.nvml, profile)
    for index in range(gpus):
        _describe(plan.models[index], models[index], memories[index], reserved_mib)
        _divide(plan.models[index], models[index], (mig or {}).get(index))
        given = uuids[index] if index < len(uuids) else f"GPU-{uuid.uuid4()}"
        plan.uuids[index] = given.encode()
    error = library.simgpu_create(str(directory).encode(), plan)
    if error == errno.EEXIST:
        raise AlreadyExists(f"{directory} already holds a machine: destroy it first, or choose another directory")
    if error:
        raise Unavailable(f"no machine can be made in {directory}: {os.strerror(error)}")
    for index in range(gpus):
        device_file(directory, index).parent.mkdir(exist_ok=True)
        device_file(directory, index).touch()
    sys.audit(MADE, directory)


def _check_memory(memories_mib: Sequence[int], reserved_mib: int) -> None:
    """Raises InvalidRequest where a GPU's memory is none that there could be."""
    smallest_mib, largest_mib = min(memories_mib), max(memories_mib)
    if not CONTEXT_OVERHEAD_MIB + reserved_mib < smallest_mib <= largest_mib <= 1 << 24 or reserved_mib < 0:
        raise InvalidRequest(
            f"a GPU cannot have {smallest_mib} MiB of memory: a bare context takes {CONTEXT_OVERHEAD_MIB} MiB, "
            f"the driver {reserved_mib}"
        )


def destroy(directory: Path) -> None:
    """Removes a machine's files; who has it open keeps what it sees. Raises NotFound where there is none."""
    if not (directory / "machine").is_file():
        raise NotFound(f"there is no machine in {directory}")
    (directory / "machine").unlink()
    for name in ("locks", "misuses"):
        (directory / name).unlink(missing_ok=True)
    shutil.rmtree(directory / DEVICE_FILES, ignore_errors=True)
    if not any(directory.iterdir()):
        directory.rmdir()


def _cuda_number(version: str) -> int:
    """ "12.4" → 12040, as the driver numbers it. Raises InvalidRequest."""
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit() and version in DRIVERS):
        raise InvalidRequest(f"CUDA {version!r} is not known here: choose one of {', '.join(DRIVERS)}")
    return int(major) * 1000 + int(minor) * 10


def _set_pace(to: Any, pace: str | Pace | None) -> None:
    """Raises InvalidRequest for one that is not known."""
    if isinstance(pace, str) and pace not in PACES:
        raise InvalidRequest(f"no pace is called {pace!r}: choose one of {', '.join(PACES)}, or none")
    chosen = PACES[pace] if isinstance(pace, str) else pace or Pace("")
    for name, value in asdict(chosen).items():
        setattr(to, name, value.encode() if name == "name" else value)


def _profile(nvml: str | NvmlProfile | None, cuda_version: str | None) -> NvmlProfile:
    """Raises InvalidRequest for one that is not known, or is of another CUDA version."""
    if isinstance(nvml, str) and nvml not in NVML_PROFILES:
        raise InvalidRequest(
            f"no profile of NVML is called {nvml!r}: choose one of {', '.join(NVML_PROFILES)}, or none"
        )
    profile = NVML_PROFILES[nvml] if isinstance(nvml, str) else nvml or NvmlProfile("")
    if cuda_version and profile.cuda_version not in ("", cuda_version):
        raise InvalidRequest(
            f"NVML's profile {profile.name} is of a driver with CUDA {profile.cuda_version}, not {cuda_version}: "
            "leave the CUDA version out"
        )
    return profile


def _set_nvml(to: Any, profile: NvmlProfile) -> None:
    to.name = profile.name.encode()
    to.count = len(profile.answers)
    for place, (function, answer) in enumerate(profile.answers.items()):
        to.answers[place].function = function.encode()
        to.answers[place].answer = ANSWERS[answer]


def _models(names: Sequence[str], gpus: int) -> list[Model]:
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise InvalidRequest(f"no model is called {unknown[0]!r}: choose one of {', '.join(MODELS)}")
    if len(names) not in (1, gpus):
        raise InvalidRequest(f"{len(names)} models do not fit {gpus} GPUs: name one for all, or one for each")
    return [MODELS[name] for name in (list(names) * gpus if len(names) == 1 else names)]


def _divide(to: Any, model: Model, profiles: Sequence[str] | None) -> None:
    """Puts a GPU into MIG mode; None: leaves it whole. Raises InvalidRequest."""
    to.mig = 1 if model.mig else 0
    if profiles is None:
        return
    if not model.mig:
        raise InvalidRequest(f"{model.name} knows no MIG: take an a100 or h100")
    if len(profiles) > MIG_DEVICES_MAX or any(profile not in model.mig for profile in profiles):
        raise InvalidRequest(
            f"an {model.name} cannot be divided into {', '.join(profiles)}: "
            f"name up to {MIG_DEVICES_MAX} of {', '.join(model.mig)}"
        )
    to.mig = 2
    to.mig_count = len(profiles)
    for place, name in enumerate(profiles):
        part, profile = to.migs[place], model.mig[name]
        part.uuid = f"MIG-{uuid.uuid4()}".encode()
        part.profile = name.encode()
        part.memory_bytes = profile.memory_mib * MIB
        part.gpu_instance = place + 1
        part.multiprocessors = profile.multiprocessors
        part.gpu_slices = part.compute_slices = profile.slices
        part.copy_engines = profile.copy_engines
        part.decoders = profile.decoders
        part.jpeg_engines = profile.jpeg_engines
        part.ofa_engines = profile.ofa_engines


def _describe(to: Any, model: Model, memory_mib: int, reserved_mib: int) -> None:
    to.name = model.name.encode()
    to.architecture = model.architecture.encode()
    to.memory_bytes = memory_mib * MIB
    to.reserved_bytes = reserved_mib * MIB
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
    to.virtual_gpu = model.virtual
    to.ecc = model.ecc
    to.power_limit_mw = model.power_watts * 1000
