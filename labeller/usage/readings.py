"""What is known of an accelerator at one moment, whichever tool told it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from edgeshare.contract.units import MIB
from labeller.usage.tegrastats import Sample

GPU_ZONE = "gpu"
GPU_RAIL = "GPU"
"""What a rail that feeds the GPU has in its name: ``VDD_GPU_SOC``."""


@dataclass(frozen=True)
class Identity:
    """Which accelerator."""

    device: str
    """As everywhere: UUID, or a Jetson's serial number; empty for a Jetson that has none."""
    model: str
    index: int = 0
    parent: str = ""
    """The GPU that this MIG device is a part of."""


@dataclass(frozen=True)
class Reading:
    """One look at an accelerator. None, or nothing: the tool does not say."""

    of: Identity
    load_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    """On a Jetson the machine's."""
    temperature_c: float | None = None
    power_w: float | None = None
    """On a Jetson that of the rail which feeds the GPU, and on most of them other things too."""
    engine_load_ratio: Mapping[str, float] = field(default_factory=dict)
    zone_c: Mapping[str, float] = field(default_factory=dict)
    rail_w: Mapping[str, float] = field(default_factory=dict)


def of_sample(sample: Sample, jetson: Identity) -> Reading:
    """What ``tegrastats`` says."""
    rails_w = {name: milliwatts / 1000 for name, milliwatts in sample.rail_mw.items()}
    return Reading(
        of=jetson,
        load_ratio=None if sample.gpu_load_percent is None else sample.gpu_load_percent / 100,
        memory_used_bytes=sample.memory_used_mib * MIB,
        memory_total_bytes=sample.memory_total_mib * MIB,
        temperature_c=sample.temperature_c.get(GPU_ZONE),
        power_w=next((watts for name, watts in rails_w.items() if GPU_RAIL in name.split("_")), None),
        engine_load_ratio={name: percent / 100 for name, percent in sample.engine_load_percent.items()},
        zone_c=sample.temperature_c,
        rail_w=rails_w,
    )


def together(board: Reading | None, gpus: Iterable[Reading], jetson: Identity | None) -> list[Reading]:
    """One reading a device. ``gpus`` is what NVML says: on a Jetson its one GPU is the ``board``'s, and fills in what
    ``tegrastats`` does not tell, on Thor the load."""
    readings = list(gpus)
    # One that has no memory of its own.
    own = [reading for reading in readings if reading.memory_total_bytes is None] if jetson is not None else []
    others = [reading for reading in readings if reading not in own]
    if jetson is None or not own:
        return [*([board] if board is not None else []), *others]
    told = board or Reading(jetson)
    return [
        replace(
            told,
            load_ratio=_either(told.load_ratio, own[0].load_ratio),
            temperature_c=_either(told.temperature_c, own[0].temperature_c),
            power_w=_either(told.power_w, own[0].power_w),
        ),
        *others,
    ]


def _either(first: float | None, second: float | None) -> float | None:
    return second if first is None else first
