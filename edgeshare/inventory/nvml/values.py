"""What of a driver's answers can be so. Pure: what cannot is said by whoever asked.

NVML's own types hold far more than any GPU has; a driver that is broken, or another's work in its place, may say it.
"""

from dataclasses import dataclass

from edgeshare.contract.units import MIB

MOST_GPUS = 255
"""Of one machine: their device files have the minor numbers below that of ``/dev/nvidiactl``. (NVIDIA, driver README,
"Device Nodes".)"""

MOST_MINOR = MOST_GPUS - 1

MIG_SLICES = 7
"""Of a GPU: it is divided into no more. (NVIDIA, "MIG User Guide", "Partitioning".)"""

MOST_MIG_DEVICES = 64
"""Of one GPU; far above the slices, for those to come."""

MOST_MEMORY_BYTES = 1 << 52
"""4 PiB: what the hook takes for more than any device has."""

MOST_COUNT = 1 << 53
"""Of errors and of millijoules: what each program that reads our metrics can hold exactly; of energy 285 years of a
kilowatt."""

MOST_CUDA = 1_000_000
"""As the driver numbers CUDA: 13020 is 13.2."""

MOST_PERCENT = 100

MOST_C = 250
"""Of a temperature, in degrees Celsius: silicon ends below."""

MOST_MW = 1_000_000_000
"""Of power: a megawatt."""

NAME_LENGTH_MAX = 96
"""NVML_DEVICE_NAME_V2_BUFFER_SIZE."""


class NonsenseError(Exception):
    """The driver says what cannot be; the text says what."""


@dataclass(frozen=True)
class Memory:
    """The memory of a device, in bytes."""

    total: int
    """More than none."""
    reserved: int
    """What the driver keeps for itself; 0 where it does not say. Less than the total."""
    used: int
    """The reserve excluded, where it is said; at most what is left beside it."""


def memory_of(total: int, reserved: int, used: int) -> tuple[Memory, str]:
    """With what could not be so; empty: nothing. A reserve that cannot be is none, and no more is in use than there is,
    nor less than nothing. Raises NonsenseError for a total that cannot be: without it there is no share of it."""
    if not MIB <= total < MOST_MEMORY_BYTES:
        raise NonsenseError(f"it has {total} bytes in all")
    kept = reserved if 0 <= reserved < total else 0
    taken = min(max(used, 0), total - kept)
    wrong = "" if (kept, taken) == (reserved, used) else f"{reserved} bytes kept and {used} used of {total}"
    return Memory(total, kept, taken), wrong


def name_in(text: str) -> str:
    """A product's name as one line that can be shown."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)[:NAME_LENGTH_MAX]
