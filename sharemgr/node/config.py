"""What can be set on a node's share manager, in its YAML file; units end the keys."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Config(BaseModel):
    """The manager's configuration. Every key has a default that suits most nodes; unknown keys are
    refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    slice_ms: Annotated[float, Field(ge=0.5, le=100)] = 5
    """Length of a slice while others wait. Shorter: others wait less, more of the device goes into
    hand-overs (at 2 ms simulation keeps 99.0 % of the throughput, at 5 ms 99.6 %)."""

    window_s: Annotated[float, Field(ge=1, le=60)] = 10
    """What the reported shares are measured over. The bound on a share's error shrinks with it."""

    queue_cap_us: Annotated[int, Field(ge=50, le=100_000)] = 500
    """GPU time that a client may keep queued while others wait. A revoked client drains within this and
    one kernel; below it, short kernels of uneven length leave gaps."""

    anticipation_us: Annotated[int, Field(ge=0, le=10_000)] = 300
    """How long a drained client keeps its turn if it always comes back that soon. Longer: loops that wait
    for each result get their share with more work between two launches, at the price of a device that
    idles meanwhile."""

    failure_policy: Literal["open", "closed"] = "open"
    """What a client does when the manager stays away: ``open`` runs on unshared, ``closed`` launches
    nothing more."""

    grace_s: Annotated[float, Field(ge=0, le=3600)] = 5
    """How long a client waits for a manager that went away before the failure policy says what it does.
    An update of the manager takes less."""

    default_limit: Literal["lend", "request"] = "lend"
    """Limit of an allocation that names none: ``lend`` gives it idle time up to the whole device,
    ``request`` never more than its request."""

    max_clients: Annotated[int, Field(ge=1, le=4096)] = 64
    """Processes of one allocation that may be joined at a time; each costs the manager two pages and two
    descriptors."""

    max_records_per_s: Annotated[int, Field(ge=100, le=1_000_000)] = 50_000
    """Records of one client that are read in a second. A client that sends more is read no faster: it slows itself
    down and nobody else. A loop that waits for each of its short kernels needs up to 30,000."""

    @property
    def slice_ns(self) -> int:
        return round(self.slice_ms * 1_000_000)

    @property
    def window_ns(self) -> int:
        return round(self.window_s * 1_000_000_000)

    @property
    def queue_cap_ns(self) -> int:
        return self.queue_cap_us * 1_000

    @property
    def anticipation_ns(self) -> int:
        return self.anticipation_us * 1_000

    @property
    def grace_ms(self) -> int:
        return round(self.grace_s * 1_000)
