"""What a card and a node do with the pods they are given: the frozen assumptions of the experiment, and single faults.

Fitted to the published raw runs (engines.py has the source); no target is met by changing them.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf

from sharemgr.replay.engines import CARD_MIB, Engine

UTILISATION_PERCENT = (1.6, 4.2, 36.3, 64.0, 79.5, 86.0, 88.0)
"""While so many engines work; the last for all beyond."""
POWER_W = (30.1, 40.4, 48.5, 52.3, 54.4, 55.0, 55.5)
CONTEXT_MIB = 320
"""Held when ten of the eighteen seconds of the ramp are over."""
CONTEXT_PART = 10 / 18
LOAD_IN_RAMP_S = 12.0
"""So much of a program's load time is over when its memory is."""
BACK_OFF_S = 10.0
"""Before a pod that crashed starts again; doubled each time."""
GRACE_S = 5.0
"""For a pod whose memory is taken back, before it is ended."""
TAKEN_MAX = 2
"""A pod that was taken back so often comes again only as guaranteed at its limit."""
LATE_PART = 0.8
"""Of its work is done when a program's late peak comes."""


@dataclass(frozen=True, slots=True)
class World:
    """How pods and their card are; what differs from the defaults is a fault."""

    free_needed: float = 0.45
    """A pod crashes where less than this part of what it needs is to be had; 1: it cannot do with less than all."""
    slow_down: float = 0.06
    """Each pod more that works makes all slower by this part."""
    start_s: float = 4.0
    """From the bind until the program runs."""
    ramp_s: float = 18.0
    """From there until it holds its memory."""
    late_peak: float = 1.0
    """Late in its work a program needs so many times the memory, within its limit."""
    scrape_s: float = 7.0
    sample_age_s: float = 0.0
    """How old samples are when they are told."""
    profile_factor: float = 1.0
    """Profiles of the pass before say so many times the peak."""
    usable_mib: int = CARD_MIB


HARD = 1.0
"""``free_needed`` of a world in which nothing works with less memory than it needs."""


class Phase(Enum):
    """The phases of a pod."""

    QUEUED = "queued"
    RAMPING = "ramping"
    CLAIMING = "waiting for memory that is taken back for it"
    LOADING = "loading"
    WORKING = "working"
    CRASHED = "crashed"
    ENDED = "ended"


@dataclass(slots=True, eq=False)
class Pod:
    """An engine on its way. Its work is lost when it crashes or is taken back."""

    engine: Engine
    guarantee_mib: int
    phase: Phase = Phase.QUEUED
    queued_at_s: float = 0.0
    bound_at_s: float = 0.0
    started_at_s: float = 0.0
    """Its program, for the last time."""
    next_s: float = inf
    """When its phase is over; while it works that depends on who else does."""
    held_mib: float = 0.0
    held_since_s: float = 0.0
    need_mib: int = 0
    """Of its program so far."""
    left_s: float = 0.0
    """Of its work, alone on the card."""
    leaves_at_s: float = inf
    """When it is ended, its memory being taken back."""
    pending_s: float = 0.0
    ended_at_s: float = 0.0
    restarts: int = 0
    taken: int = 0
    was_short: bool = False
    lost_s: float = 0.0

    @property
    def borrows(self) -> bool:
        """Whether it may come to hold more than it is guaranteed."""
        return self.guarantee_mib < self.engine.limit_mib

    def full_mib(self, world: World) -> int:
        """What it needs from its late peak on."""
        return min(self.engine.limit_mib, round(self.engine.need_mib * world.late_peak))

    def peak_left_s(self, world: World) -> float:
        """How much work is left when its late peak comes; 0 where none does, or has."""
        if world.late_peak <= 1 or self.need_mib >= self.full_mib(world):
            return 0.0
        return self.engine.work_s * (1 - LATE_PART)

    def used_mib(self, world: World, now_s: float) -> float:
        """What it holds."""
        if self.phase is not Phase.RAMPING:
            return self.held_mib
        part = max(0.0, (now_s - self.started_at_s) / world.ramp_s)
        knee_mib = min(CONTEXT_MIB, self.need_mib)
        if part <= CONTEXT_PART:
            return knee_mib * part / CONTEXT_PART
        return knee_mib + (self.need_mib - knee_mib) * min(1.0, (part - CONTEXT_PART) / (1 - CONTEXT_PART))
