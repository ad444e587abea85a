"""The gate of one allocation, as the rule of the gates (rule.py) sees it, and the constants of that rule."""

from dataclasses import dataclass

from edgeshare.contract.units import NS_PER_MS, NS_PER_S, NS_PER_US
from sharemgr.node.turns.demand import Demand
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.standing import Standing
from sharemgr.node.turns.share.trust import Trust

LEAST_PART = 0.0001
"""e is at least this, so that whoever works earns something: a hundredth of the smallest request."""

TURNS_TELL_NS = 4 * NS_PER_S // 10
"""Turns that last for so long tell what somebody has by them."""
TURNS_MOST_NS = 4 * NS_PER_S
"""Of that the last half or more counts: rivals come and go."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The constants of the rule. They were chosen by the grid (tests/sim) unless they say otherwise."""

    kappa: float = 2.5
    """κ, 1 to 99: how much of the device may be kept for one that leaves gaps, as a multiple of what it uses alone. At
    1 throughput is largest, at 99 requests are met as far as can be."""
    bucket_ns: int = 20 * NS_PER_MS
    """B: four slices."""
    most_lag_ns: int = 40 * NS_PER_MS
    """M: eight slices. Who cannot use its part must not keep others out for long once it can."""
    heavy_queue_ns: int = 20 * NS_PER_US
    """Two launches and a wake: with less the device is idle between kernels, with 40 µs light ones have 0.3 % less."""
    met: float = 0.95
    """Of what is due, and of r d: above this nobody is kept out, as costs and demands are not known better."""
    least: float = 0.7
    """Who has less of r d has up to r of the device kept for it, whatever κ is. At 0.85 throughput is 0.3 % less."""
    worth: float = 0.1
    """What one lacks, as a part of what those use that would be kept out for it. At 0.15 throughput is 1.3 % more, and
    min(d, r) is met by 1.2 % less."""
    room: float = 1.05
    """Σ d, below which all have room. More than the device, as those that keep to a period seem to want more than they
    do where their kernels wait. With 0.95 one light load of a hundred more has less than with no gates."""
    away_ns: int = Settings().lone_after_ns
    """Who has had no work for so long is away: it earns nothing, and its turns tell nothing of it."""


class Gate:
    """The gate of one allocation, and what the rule knows of it."""

    __slots__ = (
        "bucket_ns",
        "by_turns",
        "cap_ns",
        "charged_ns",
        "demand",
        "heavy",
        "held",
        "lacks",
        "lag_ns",
        "open",
        "part",
        "protected",
        "standing",
        "suspect",
        "trust",
        "turn_ns",
        "turns_from_ns",
        "turns_gpu_ns",
        "turns_worked_ns",
        "used_ns",
        "worked",
        "worked_ns",
    )

    def __init__(self, standing: Standing, settings: Settings) -> None:
        self.standing = standing
        self.demand = Demand()
        self.open = False
        self.cap_ns = settings.queue_cap_ns
        self.heavy = False
        self.protected = False
        self.lacks = False  # it has much less than its request of what it uses alone
        self.part = LEAST_PART  # e
        self.lag_ns = 0
        self.bucket_ns = 0
        self.trust = Trust()
        self.suspect = False  # it is charged for what it holds, and not for what its pages say
        self.held = False  # it was in, or had not drained, at the last look …
        self.turn_ns = 0  # … and has been charged with so much since it was let in, if it is a suspect
        self.worked = False  # at the last look
        self.worked_ns = -1  # when it last had work; -1: it is away
        # At the last settling: GPU time that it used, and with idle time that was kept for it what it was charged with.
        self.used_ns = self.charged_ns = 0
        self.turns_gpu_ns = 0  # that it said it used by turns …
        self.turns_from_ns = 0  # … since then, …
        self.turns_worked_ns = -1  # … and when it had work last
        self.by_turns = -1.0  # of the device, what it had by turns when they lasted for long; -1: not known

    def begin(self) -> None:
        """The rule looks at it from now on: it owes nothing, and is owed nothing."""
        self.open = self.held = self.protected = self.lacks = self.worked = False
        self.heavy = self.suspect
        self.part = LEAST_PART
        self.lag_ns = self.bucket_ns = self.used_ns = self.charged_ns = self.demand.gpu_ns = self.turn_ns = 0
        self.worked_ns = -1

    def take_over(self, bucket_ns: int, now_ns: int) -> None:
        """What it owes by turns it owes here, and what it is owed; of a debt that is more than ``bucket_ns``, which is
        the most that one is beyond its guarantee by what it uses bit by bit, it has used the rest at once."""
        if self.standing.lag_ns:
            self.wake(now_ns)
            self.lag_ns = self.standing.lag_ns
            self.part = self.request
            self.bucket_ns = min(0, self.lag_ns + bucket_ns)

    def hand_over(self, now_ns: int) -> None:
        """Turns begin: what the allocation owes here it owes there, and what it is owed."""
        self.standing.lag_ns, self.standing.left_ns = self.lag_ns, now_ns

    def begin_turns(self, now_ns: int) -> None:
        """From now on it is seen what it has by turns."""
        self.turns_from_ns = self.turns_worked_ns = now_ns
        self.turns_gpu_ns = 0

    def note_turns(self, gpu_ns: int, away_ns: int, now_ns: int) -> None:
        """The allocation says that it used so much by turns since it was asked last. What one has that wants nothing
        says nothing of turns."""
        if not gpu_ns and not self.demand.works:
            return
        if now_ns - self.turns_worked_ns > away_ns:
            self.begin_turns(now_ns)
            return
        self.turns_worked_ns = now_ns
        self.turns_gpu_ns += gpu_ns
        if now_ns - self.turns_from_ns > TURNS_MOST_NS:
            self.turns_from_ns += TURNS_MOST_NS // 2
            self.turns_gpu_ns //= 2

    def end_turns(self, now_ns: int) -> None:
        """Others may be let in beside it from now on."""
        turns_ns = now_ns - self.turns_from_ns
        if turns_ns >= TURNS_TELL_NS:
            self.by_turns = self.turns_gpu_ns / turns_ns

    def begin_look(self) -> None:
        """Whether it has drained the pages of a suspect may lie about: it says so by a RELEASE."""
        self.demand.queued = self.demand.queued or (self.suspect and self.open)

    def end_look(self) -> None:
        """Which gates are open is decided."""
        self.worked = self.demand.works
        self.held = self.open or self.demand.queued
        if not self.held:
            self.turn_ns = 0

    def wake(self, now_ns: int) -> None:
        """The allocation has work."""
        if not self.active:
            # It has not fallen short of anything yet.
            self.demand.used = self.request
        self.worked_ns = now_ns

    @property
    def active(self) -> bool:
        """Whether it has had work lately: only then it earns."""
        return self.worked_ns >= 0

    @property
    def tells(self) -> bool:
        """Whether its clients say when they have drained though it is open, and take it as closed then."""
        return self.heavy or self.standing.latency

    @property
    def entitled(self) -> bool:
        """Whether it has not had its part yet, over long or over short: it is kept out for nobody."""
        return self.lag_ns >= 0 or self.bucket_ns >= 0

    @property
    def usual(self) -> float:
        """d: what it uses alone. A suspect may want all of the device."""
        return 1.0 if self.suspect else self.demand.usual

    @property
    def resident(self) -> bool:
        """Whether its gate stays open."""
        return self.bucket_ns >= 0 and not self.heavy and not self.standing.latency

    @property
    def request(self) -> float:
        """r."""
        return self.standing.request_percent / 100

    @property
    def floor(self) -> float:
        """r d: its request of what it uses alone."""
        return self.request * self.usual

    @property
    def had_by_turns(self) -> float:
        """What it had of the device by the last turns, as far as that is owed it; below 0: not known."""
        return min(self.by_turns, self.demand.usual, self.request)

    @property
    def fullness(self) -> float:
        """The part of the device that it keeps busy while it is in."""
        return 1.0 if self.heavy else self.demand.recent
