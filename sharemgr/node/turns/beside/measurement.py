"""Whether several may be in on a device at once, or must take exclusive turns: as it was measured there.

**Dear switches.** A device that takes long to go from one process to another does less with several of them in than by
turns. What a switch costs beside others no client can measure; how busy the device is, the sum of what they report
says. It is held against what turns would give, and so is what those that never pause get against their requests, and
what those that leave gaps get against that part of what they use alone, or what they had by the last turns where that
was less. And where not all have room, nobody is to have less than it had by the last turns, unless by those another had
less than its part and less than now. Where turns are better, they are taken for a while, and then several are tried
again.

**Lies.** By gates GPU time is charged as it is reported, by turns held time. So reports must add up to what the device
was busy, as its driver says, and to no more than the time that went by. Where that is not so, whoever lies is singled
out if the driver says which processes used the device (share/trust.py), and those that are believed must add up to what
is left. Where nobody can be, turns are taken until it is so, and for longer each time until it was for twice as long.
Who reports too little gains until that is seen: a second or two of 32. A lie of less than 5 % of the device is not
seen, nor are about a fifth of it behind a kernel of a second that somebody feigns for ever.

A bad choice where one client lies, the others never do, and nobody knows which: they all take turns, which is what they
had without gates.
"""

from edgeshare.contract.units import NS_PER_S, NS_PER_US
from sharemgr.node.turns.demand import HEAVY_PART, JUDGED_NS
from sharemgr.node.turns.gate import Gate
from sharemgr.node.turns.share.trust import Gap, Spell

PAYS = 0.97
"""Of what turns would give. They cost hand-overs, 1 % of the device, and what they would give is an estimate."""
LIGHT_PAYS = 0.9
"""What has to be had of what turns would give to one that leaves gaps, of which one knows less: each of its bursts
waits for a turn."""
TURNS_PART = 0.95
"""Nobody is to have less side by side than this part of what the last turns gave it, as far as it is owed that."""
IDLE_PART = 0.02
"""Who uses less than this of the device has no part in what a look says about the device."""
LOOKS = 20
"""Over how many looks it is judged by their means: a burst and the pause behind it are in several of them."""
DEAR_NS = 20 * NS_PER_US
"""A shorter switch costs less than a hand-over by turns does."""
LEAST_NS = 2 * NS_PER_S
MOST_NS = 16 * NS_PER_S
"""How long turns last before several are tried again: twice as long each time, so that trying costs a hundredth of the
device where it never pays, and not much is lost where it soon does."""


class Beside:
    """Judges looks, and says when it is turns."""

    __slots__ = (
        "_busy",
        "_by_turns",
        "_checked_ns",
        "_gap",
        "_lasts_ns",
        "_lied",
        "_looks",
        "_tried_ns",
        "_until_ns",
        "in_turns",
    )

    def __init__(self) -> None:
        self.in_turns = False
        self._busy = self._by_turns = 1.0
        self._looks = 0  # since several were let in
        self._until_ns = 0
        self._tried_ns = 0  # since when several have been tried again
        self._lasts_ns = LEAST_NS
        self._lied = Spell()
        self._gap = Gap()  # of what was reported by all
        self._checked_ns = 0

    def begin(self) -> None:
        """Several are let in from now on."""
        self._busy = self._by_turns = 1.0
        self._looks = 0

    def note_look(self, gates: list[Gate], busy: float, now_ns: int) -> None:
        """What a look gave is held against what turns would have given, where several used the device in it."""
        if sum(gate.open and gate.demand.recent > IDLE_PART for gate in gates) > 1:
            weight = sum(gate.standing.request_percent for gate in gates)
            self.note(busy, sum(gate.standing.request_percent * gate.fullness for gate in gates) / weight, now_ns)

    def note(self, busy: float, by_turns: float, now_ns: int) -> None:
        """A look is over at which several were in: the part of it that the device was busy, and what that would have
        been by turns."""
        self._busy += (busy - self._busy) / LOOKS
        self._by_turns += (by_turns - self._by_turns) / LOOKS
        self._looks += 1
        if self._looks >= LOOKS and self._busy < PAYS * self._by_turns:
            self.take_turns(now_ns)

    def take_turns(self, now_ns: int) -> None:
        """Turns begin, for a while: side by side somebody gets less."""
        if self.in_turns:
            return
        if now_ns - self._tried_ns > 2 * self._lasts_ns:
            self._lasts_ns = LEAST_NS
        self._begin(now_ns + self._lasts_ns)
        self._lasts_ns = min(2 * self._lasts_ns, MOST_NS)

    def check(self, reported_ns: int, pending_ns: int, busy_ns: int | None, now_ns: int) -> bool:
        """What all reported since the last check, for how long one may have been using the device that has reported
        nothing since, and what the device was busy by its driver; None: that is not known. Returns whether that adds
        up."""
        elapsed_ns, self._checked_ns = now_ns - self._checked_ns, now_ns
        if busy_ns is not None:
            self._gap.check(reported_ns, busy_ns, elapsed_ns)
            if self._gap.fits(pending_ns):
                return True
        self._gap.clear()
        return busy_ns is None

    def lie(self, now_ns: int) -> None:
        """Somebody lies, and nobody knows who: it is turns, or for longer."""
        self._gap.clear()
        self._lied.begin(now_ns)
        self._begin(max(self._until_ns, self._lied.until_ns))

    def look(self, now_ns: int) -> None:
        """Lets several in again when turns have lasted for long enough."""
        if self.in_turns and now_ns >= self._until_ns:
            self.in_turns = False
            self._tried_ns = now_ns

    def _begin(self, until_ns: int) -> None:
        self.in_turns = True
        self._until_ns = until_ns


def lacks_by_sharing(gate: Gate) -> bool:
    """Whether it has had less for a while than turns give: its request, or where it leaves gaps that part of what it
    uses alone."""
    demand = gate.demand
    if demand.usual > HEAVY_PART:
        # What it is owed it will have: by turns it waits for the ends of long kernels, too.
        return gate.heavy and demand.had + max(0, gate.lag_ns) / JUDGED_NS < PAYS * gate.floor
    # Where kernels are long turns may give it less.
    return demand.had < LIGHT_PAYS * gate.floor and not 0 <= gate.by_turns <= demand.had


def had_more_by_turns(gates: list[Gate]) -> bool:
    """Whether one has had less for a while than by the last turns, as far as that is owed it; not where turns gave
    another less than its part of what it uses alone, and less than it has."""
    more = False
    for gate in gates:
        had = gate.demand.had
        if 0 <= gate.by_turns < min(LIGHT_PAYS * gate.floor, had):
            return False
        more = more or had < TURNS_PART * gate.had_by_turns
    return more
