"""What was observed of a device, and what is known of its health."""

from dataclasses import dataclass

from edgeshare.contract.health import Answer, Reason, Source


@dataclass(frozen=True)
class Moment:
    """A time on both clocks: one to measure with, one to tell people."""

    monotonic_ns: int
    unix_ns: int


@dataclass(frozen=True)
class Xid:
    """The driver reported an XID."""

    number: int


@dataclass(frozen=True)
class DoubleBitError:
    """The driver reported a memory error that ECC cannot correct."""


@dataclass(frozen=True)
class Look:
    """One look at a device."""

    boot_id: str
    """The kernel's, another one after each boot."""
    answer: Answer | None
    """None: there was none."""
    error: str = ""
    """Why not."""
    lost: bool = False
    """The driver says that the device has left the bus."""
    files: frozenset[str] = frozenset()
    """Which of its device files are there."""
    source: Source = Source.DRIVER
    """Who answered, or did not."""


@dataclass(frozen=True)
class Condition:
    """One thing that is wrong with a device."""

    reason: Reason
    detail: str
    source: Source
    since_unix_ns: int
    fresh: bool = False
    """Its cause came since the last look. A reset that the next look shows may have been before it."""
    reset_seen: bool = False
    """The device was reset since the cause was last there."""
    good_looks: int = 0
    """Looks in a row at which the cause was not there."""
    good_since_ns: int | None = None
    """The first of those; monotonic."""


@dataclass(frozen=True)
class State:
    """What is known of one device's health."""

    conditions: tuple[Condition, ...] = ()
    """The gravest first."""
    boot_id: str = ""
    """Of the last look; empty: there was none."""
    energy_mj: int | None = None
    uncorrected: int | None = None
    remap_pending: bool | None = None
    files: frozenset[str] = frozenset()
    """Every device file that it was seen to have."""
