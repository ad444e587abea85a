"""What is said of a device's health, whoever asks."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from edgeshare.contract.units import NS_PER_S

APPLICATION_XIDS = frozenset({13, 31, 43, 45, 68, 109})
"""XIDs that a program's own mistake causes, and that leave the GPU well: those that NVIDIA's k8s-device-plugin ignores
unless told otherwise (internal/rm/health.go). 109 (a context switch that took too long) is one for which NVIDIA's
catalogue asks for a reset on new drivers."""


class Reason(StrEnum):
    """Why a device is not healthy, in one word, the gravest first. They are in events, metrics and kept records: none
    is ever renamed."""

    FELL_OFF_BUS = "FellOffBus"
    XID = "Xid"
    UNCORRECTABLE_ECC = "UncorrectableEcc"
    ROW_REMAP_FAILED = "RowRemapFailed"
    NO_ANSWER = "NoAnswer"
    DEVICE_FILE_GONE = "DeviceFileGone"
    ROW_REMAP_PENDING = "RowRemapPending"
    TOO_HOT = "TooHot"
    PASSING_XID = "PassingXid"


class Source(StrEnum):
    """Who said so."""

    DRIVER_EVENT = "driver-event"
    DRIVER = "driver"
    INVENTORY = "inventory"
    """What the kernel shows of a device that has no management library."""
    FILE_SYSTEM = "file-system"


@dataclass(frozen=True)
class Answer:
    """What the driver says of a device. None: it does not say."""

    energy_mj: int | None = None
    """Since the driver was loaded."""
    uncorrected: int | None = None
    """Memory errors that ECC could not correct, since the driver was loaded."""
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    temperature_c: int | None = None


@dataclass(frozen=True)
class Health:
    """A device's health. What is empty or 0 belongs to a device that is not healthy."""

    healthy: bool = True
    reason: str = ""
    """The gravest one, a ``Reason``."""
    message: str = ""
    """All that is wrong, for people."""
    until: str = ""
    """What makes it healthy again, for people."""
    source: str = ""
    """A ``Source``: who told of the gravest one."""
    since_unix_ns: int = 0
    """Since when it has not been healthy."""

    @property
    def cause(self) -> str:
        """What is wrong, who said so and since when, for people; empty for a healthy one."""
        return "" if self.healthy else f"{self.message} ({self.source}, since {self.since})"

    @property
    def since(self) -> str:
        """Since when it has not been healthy, in UTC as RFC 3339 has it."""
        return datetime.fromtimestamp(self.since_unix_ns // NS_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def __str__(self) -> str:
        return "healthy again" if self.healthy else f"not healthy: {self.cause}; healthy again {self.until}"


HEALTHY = Health()
