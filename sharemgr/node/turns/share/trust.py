"""Whether what the pages of an allocation's clients say is believed: who of a device's is singled out for a lie.

GPU time is charged as pages say it while several are let in beside each other (beside/rule.py). Each second the driver
says how busy the device was, and which part of that each process had. Where reports do not add up to the first
(beside/measurement.py), the second says whose they are.

    state      charged                          becomes
    believed   GPU time, as its pages say       suspect: reports do not add up, and its own are not what the driver says
                                                of its processes; or a counter of its pages went back
    suspect    held time, less what those that  believed: after 30 s, and after twice as long each time until it was
               are in beside it report          believed for twice as long. Counters that go back: 30 s from then

A suspect never keeps its gate open: it is in for turns, as one that never pauses, beside nobody but those that leave
gaps and are within their guarantee. What it hid before it was seen it is charged with at once, as with a long kernel.
What its pages say of its use counts for nothing; they are read all the same, so that it is known when it is believed
again.

**Bound.** One process at a time has the device, so that a suspect used no more than was held and the others did not
use; those others are believed, and what they say is held against what the driver says of them alone. So it gets what
one gets at its place that never pauses. What it gets before that is what it has within two checks, of which the first
sees what hides a quarter of the device; it pays it back.

**Bad cases.** A driver that does not say what processes use (Jetsons, WSL2, MIG devices, virtual GPUs), a lie that is
divided so that nobody's own part of it is a tenth of a second, and a process that no hook joined: all take turns
(measurement.py). A liar that does pause is charged for its pauses while it is in. An honest one of which the driver
says too much is a suspect if somebody lies in the same second.
"""

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.turns.settings import Settings

LIE_NS = 30 * NS_PER_S
LIE_MOST_NS = 960 * NS_PER_S
"""For how long a lie counts, at least and at most."""
FIT = 0.95
"""Costs are learned to 2 %, and a driver says of a second what is at the edge of another: reports that are this part of
what was used are no lie."""
LACKS_NS = NS_PER_S // 10
STAYS = 0.8
"""What lacks must add up to this much, a fifth of it being forgotten with each check: a driver tells of the last part
of a second alone."""
EXCESS_NS = NS_PER_S
"""So much more than there was is no error of costs: the kernel of a second may end in a check. What one says too much
another is charged too little."""
PENDING_MOST_NS = Settings().drain_most_ns
"""What may be running and is in no counter yet, at most: as long as a drain is expected to be."""


class Gap:
    """How far reports are from what the driver says, as checks go by."""

    __slots__ = ("excess_ns", "lacks_ns")

    def __init__(self) -> None:
        self.lacks_ns = self.excess_ns = 0

    def check(self, reported_ns: int, used_ns: int, most_ns: int) -> None:
        """Takes in what was reported since the last check, what was used by the driver's word, and ``most_ns``, the
        time that there was for it."""
        self.lacks_ns = max(0, int(self.lacks_ns * STAYS + FIT * used_ns - reported_ns))
        self.excess_ns = max(0, int(self.excess_ns * STAYS + reported_ns - most_ns))

    def clear(self) -> None:
        """Begins anew."""
        self.lacks_ns = self.excess_ns = 0

    def fits(self, pending_ns: int, excess_ns: int = EXCESS_NS) -> bool:
        """Whether reports are what was used, as far as can be known; ``pending_ns`` may have been running that is in
        none."""
        return self.lacks_ns <= LACKS_NS + min(pending_ns, PENDING_MOST_NS) and self.excess_ns <= excess_ns


class Spell:
    """For how long a lie counts: longer each time, until there was none for twice as long."""

    __slots__ = ("_lasts_ns", "until_ns")

    def __init__(self) -> None:
        self.until_ns = 0
        self._lasts_ns = LIE_NS

    def begin(self, now_ns: int) -> None:
        """Somebody lies, or still does."""
        if now_ns < self.until_ns:
            self.until_ns = max(self.until_ns, now_ns + LIE_NS)
            return
        if now_ns - self.until_ns > 2 * self._lasts_ns:
            self._lasts_ns = LIE_NS
        self.until_ns = now_ns + self._lasts_ns
        self._lasts_ns = min(2 * self._lasts_ns, LIE_MOST_NS)


class Trust:
    """Of one allocation."""

    __slots__ = ("_gap", "_spell", "lies", "reported_ns", "told_ns", "used_ns")

    def __init__(self) -> None:
        self.reported_ns = 0
        """What its pages have said since the last check."""
        self.lies = False
        """They have said since then what no hook ever does."""
        self.told_ns = self.used_ns = 0
        """At the last check: what its pages said, and what its processes used by the driver's word."""
        self._gap = Gap()
        self._spell = Spell()

    def check(self, used_ns: int | None, believed: bool) -> None:
        """The driver says that its processes used so much since the last check, in which it was ``believed`` or not;
        None: it does not say."""
        self.told_ns, self.reported_ns = self.reported_ns, 0
        self.used_ns = used_ns or 0
        if used_ns is None or not believed:
            self._gap.clear()
        else:
            self._gap.check(self.told_ns, used_ns, used_ns)

    def fits(self, pending_ns: int) -> bool:
        """Whether its reports are what its processes used. Half of what all may say too much is enough to be the one
        that says it: others may say a little less than they used."""
        return self._gap.fits(pending_ns, EXCESS_NS // 2)

    def lose(self, now_ns: int) -> int:
        """The allocation lies: it is believed no more for a while. Returns what it is known to have hidden."""
        hidden_ns = self._gap.lacks_ns
        self.lies = False
        self._gap.clear()
        self._spell.begin(now_ns)
        return hidden_ns

    def lost(self, now_ns: int) -> bool:
        """Whether it is not believed."""
        return now_ns < self._spell.until_ns
