"""What a device is, whoever found it."""

from dataclasses import dataclass
from enum import StrEnum


class Accelerator(StrEnum):
    """The kinds of device that are shared."""

    GPU = "gpu"
    EDGETPU = "edgetpu"


@dataclass(frozen=True)
class Device:
    """A physical accelerator, as an inventory reports it."""

    id: str
    """Stable across reboots: NVML's UUID for a GPU."""
    index: int
    model: str
    memory_mib: int
    """Total, less what the driver keeps for itself."""
    accelerator: Accelerator = Accelerator.GPU
    numa_node: int = -1
    """-1 where the machine does not say."""
    paths: tuple[str, ...] = ()
    """Device nodes that a container needs to use it."""
    healthy: bool = True
    cause: str = ""
    """Why it is not healthy."""
