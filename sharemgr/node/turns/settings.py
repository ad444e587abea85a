"""What is set of the rule of a device's time, and of each allocation's part in it."""

from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US

STOOD_STILL_NS = 2 * NS_PER_S
"""What each has had is looked at each second (keep_judging). Where so much went by at once, the manager itself stood
still: nobody could be called back or let in meanwhile, and nobody owes anything for it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The constants of the rule. The defaults were chosen by simulation (tests/sim) unless they say otherwise."""

    slice_ns: int = 5 * NS_PER_MS
    """L. At 2 ms a hand-over of 20 µs costs 1 % of the device, at 5 ms 0.4 %; waits grow with it."""
    queue_cap_ns: int = 500 * NS_PER_US
    """Q: GPU time that a client may keep queued beyond its slice while contended. Less leaves the device idle."""
    anticipation_ns: int = 300 * NS_PER_US
    """A: longest think time for which a drained client keeps its turn."""
    drain_grace_ns: int = 60 * NS_PER_MS
    """How long past its expected end a drain is waited for (persistent kernels, waits on another process)."""
    drain_most_ns: int = NS_PER_S
    """The longest drain that is expected of one that has drained in such a time: a graph of many kernels runs to its
    end."""
    limit_burst_ns: int = 50 * NS_PER_MS
    """How far a client may run ahead of its limit's rate; ten slices."""
    budget_period_ns: int = 50 * NS_PER_MS
    """Period of the latency class's budget; an inference request at 20 Hz fits one period."""
    least_turn_ns: int = 200 * NS_PER_US
    """How long a turn lasts at least that another's waking ends: ten hand-overs of 20 µs."""
    lone_after_ns: int = NS_PER_S
    """How long no other may have had work before a holder's queue is no longer capped: what it queues then delays
    the next that comes, so it must not be done for one that is only between two requests."""
    window_ns: int = 10 * NS_PER_S
    """What shares are reported over; also the most held time that is ever owed."""
    exclusive: bool = False
    """The device lets one process in at a time (an EdgeTPU): a grant is of one client that asks, and lasts until it
    gives the device back. Nobody else can use it meanwhile, so that no drain is ever given up; Q is nothing then."""


@dataclass(frozen=True, slots=True)
class Share:
    """What an allocation may have of one device: percents of its time."""

    request_percent: int
    limit_percent: int
    latency: bool = False
