"""What is said of a device's health, whoever asks."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from edgeshare.units import NS_PER_S


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
    FILE_SYSTEM = "file-system"


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

    def __str__(self) -> str:
        if self.healthy:
            return "healthy again"
        since = datetime.fromtimestamp(self.since_unix_ns // NS_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"not healthy: {self.message} ({self.source}, since {since}); healthy again {self.until}"


HEALTHY = Health()
