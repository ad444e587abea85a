"""Who goes next on one device: the rule, its bound, and why the bound holds.

The rule is EEVDF (Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First", 1995) with charges measured
afterwards instead of request lengths known beforehand, a leaky bucket (GCRA, ITU-T I.371) for the limit, and a
constant-bandwidth server (Abeni and Buttazzo, 1998) for the latency class. r is an allocation's request as a
fraction; the requests of a device add up to at most 1. A *turn* is one slice of an allocation, however many grants it
is made of.

    L       length of a slice; where that is more, 40 H (two slices at most) less what c's drains take as a rule; 1 ms
            more or less where a slice of another device ends then (ends.py)
    q(c)    what a turn of c costs: the most of late (an excess fades by an eighth a turn), at least L, at most 4 L
    V       Σ r·v / Σ r over the competing allocations; the last value while there is none
    enter   v such that c's lag r (V − v), itself counted in V, is what it took along when it left:
            credit: at most L (1 − r), or its part of the longest turn lately (less a sixteenth of the time since)
                    where that was long; and only after less than 4 L away
            debt: less r for each nanosecond away, which is what staying would have earned it at least
    leave   asleep (drained, nothing came within A(c)), gone, or over its limit
    A(c)    min(A, 2 × usual think time); 0 where the usual think time is above A. A is 2 H where that is more: to go to
            another and back would take the device as long. L where it thinks for less than 2 A as a rule, and the next
            one is ahead and has long turns
    pick    of the latency allocations with budget the one whose period ends first; else, among those with v ≤ V,
            the least deadline v + q(c)/r
    owed    a turn that costs more than 5 L is long. Those with v ≤ V whose turns are not, as a rule, go before all
            others until each of them has had as much since as its part of it: long turns follow each other where
            nobody else waits
    keep    the turn is picked again when its slice is used up (a renewed slice is a new turn), not before; while
            its client thinks, for at most A(c), the device waits for it
    wake    one that has work again after it had none ends the turn of a holder before which it would be picked, once
            that has lasted for max(200 µs, 12 H) since the grant, if it has lag ≥ 0. Who is next is picked as ever. It
            is charged 2 H at its drain: the hand-overs to it and back, which are nobody's otherwise
    charge  v += held/r, where held time runs from the grant to the drain, thinking that was waited for included,
            At the drain it is put right: min(H, held − gpu) was nobody's where another had the device before, and what
            was used before that other one had drained goes from its v to this one's
    H       what the device takes to change hands: the middle of what its allocations say, at most L/10
    queue   while contended, what the rest of the slice has room for, and Q beyond; Q alone where a latency allocation
            could end the slice at any time, and what the 200 µs or 12 H have room for where another slept within the
            last second, which may wake
    early   once the holder has foretold its drain, the next is granted for that time: it wakes by itself, ahead of it
            by what it usually takes to launch (at most 200 µs); until the drain the device is charged to the holder.
            Where that comes sooner, the next one's slice ends after 4 L at the latest, the most that q is
            Not after one whose drains end, as a rule, over 2 ms later than the next one was told: the two would run
            side by side
    drain   waited for: Q, and the most of late (an excess fades by an eighth) or what is foretold of it, up to the
            longest that ended (at most 1 s), and 60 ms. Nothing ended for one that was not waited for to its end
            What one says that it used after that is charged to it then, as far as it was not, and comes off the charges
            of those who held the device meanwhile, as far as they used less (overruns.py)
    limit   TAT = max(TAT, grant) + gpu/limit, counted in GPU time; c competes while TAT − now ≤ 50 ms
    budget  of a latency allocation: r × 50 ms in each 50 ms; held time is taken from it, an overrun is carried on

**Bound.** Let K be the longest kernel, Q the cap on queued work, A the longest anticipation and q = L + Q + K + A.
While the same allocations compete, −q < lag ≤ q for each, whatever their number. So over W ns each gets its part of
the held time, r/Σr ≥ r, to within 2 q: 0.32 % of 10 s with L = 5, Q = 0.5, K = 10 and A = 0.3 ms.

*Sketch.* Σ lag = 0 by the choice of V, so somebody always has v ≤ V and the device never idles while there is work.
Below: a turn begins with lag ≥ 0 and costs at most q: slice, then what is queued and one kernel, once A. While others
run, lag only grows. Above: let c wait with deadline D = v(c) + q(c)/r(c), and let b be the last turn begun before now
by one whose deadline was above D, at virtual time V0. At V0 nobody eligible had a deadline up to D: all those (c too)
had v > V0. Since then only they were served, and each of them, but for c, at most up to v = D, its turns costing no
more than its q; so Σr (V − V0) ≤ q + (Σr − r(c)) (D − V0) + r(c) (v(c) − V0), hence Σr (V − D) ≤ q − q(c), hence
lag(c) = r(c) (V − v(c)) ≤ q(c) + (q − q(c)) r(c)/Σr ≤ q. A turn that costs x more than its q(c) adds at most x
r(c)/Σr, once for each rival; q(c) follows the most that turns cost, and not their mean, so that this stays small.
Nothing here asks a turn to be long: one that a wake ends costs less, and who is next is picked by the same rule.
Its turn costs it 2 H more: the others get their part of the time in which the device goes to and fro for it, too.

What is put right at a drain is at most H, or as much as the drain before lasted longer than foretold, and sums to
nothing or less: until then V and one v are wrong by so much, which adds it to q once.

Those whose turns are not long may be picked ahead of an earlier deadline: for each long turn until they have had their
parts of it, by which they are behind, and one turn of each at least. So one whose turns are long waits for another long
turn, and for as long again. By deadlines alone one would wait for all long ones: q is at most 4 L, and nothing is known
of who comes for the first time, so that the deadlines of many are over at once, and none of their turns brings another
one an earlier deadline; and with one turn of each in between, who is due more than that would get it at last, all at
once.

A kernel longer than K breaks the bound once; what it cost is owed and paid back, up to one window. Latency turns may
begin with lag < 0 and lower the bound of the others by up to 2 r × 50 ms. Somebody who leaves with lag x and does not
come back moves each other lag by its part of x, which is physical: that time has been given already.
**Limit.** Whoever is granted has TAT ≤ now + 50 ms, so the GPU time in any W is at most limit (W + 50 ms) + L + Q + K.

A bad choice where a device can be partitioned in space (its neighbours could run at the same time), or where kernels
are much longer than the wait that users accept: nothing here can interrupt a kernel.
"""

from collections.abc import Iterable
from typing import TypeVar

from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.latency import is_urgent, renew_budget
from sharemgr.node.turns.share.standing import Standing

RECKONED_SLICES = 4
"""Deadlines reckon with turns that cost so many slices at most."""

LONG_SLICES = 5
"""A turn that costs more is long: beyond what deadlines reckon with, there is what is queued, and a kernel."""


S = TypeVar("S", bound=Standing)


def fade(longest_ns: int, passed_ns: int) -> int:
    """What was longest lately, after so much time more: a sixteenth of that shorter. Who is owed for it gets it back
    sooner, while the other one waits, unless it asks for less than a sixteenth."""
    return max(0, longest_ns - passed_ns // 16)


class Competition:
    """The allocations that compete for one device, and their virtual time."""

    __slots__ = ("_last_v", "_long_ns", "_long_v", "_settings", "_weight", "_weighted_v", "longest_ns")

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._weight = 0  # Σ request_percent of those that compete
        self._weighted_v = 0  # Σ request_percent · v of those that compete
        self._last_v = 0
        self._long_ns = LONG_SLICES * settings.slice_ns
        self._long_v = 0  # how far long turns have moved V, all in all
        self.longest_ns = 0
        """What the longest turn lately cost, if it was long, less a part of the time since."""

    @property
    def virtual_time(self) -> int:
        """V, rounded down: an integer v is at most V exactly when it is at most this."""
        return self._weighted_v // self._weight if self._weight else self._last_v

    def lag_ns(self, standing: Standing) -> int:
        """Held time that it is behind (above 0) or ahead of (below 0) its part."""
        return (self.virtual_time - standing.v) * standing.request_percent // 100

    def enter(self, standing: Standing, now_ns: int) -> None:
        """Lets it compete, with the credit or the debt that it took along."""
        percent = standing.request_percent
        lag_ns = self.carried_ns(standing, now_ns)
        standing.v = self.virtual_time
        if self._weight:
            # V moves towards the one that enters; the factor undoes that (and nothing is owed to nobody).
            standing.v -= lag_ns * 100 * (self._weight + percent) // (percent * self._weight)
        self._weight += percent
        self._weighted_v += percent * standing.v
        standing.active = True
        standing.caught_up_v = self._long_v
        self._set_deadline(standing)
        if standing.latency:
            renew_budget(standing, now_ns, self._settings)

    def carried_ns(self, standing: Standing, now_ns: int) -> int:
        """The credit (above 0) or the debt of one that does not compete, if it did again now."""
        percent = standing.request_percent
        away_ns = now_ns - standing.left_ns
        if standing.lag_ns <= 0:
            return min(0, standing.lag_ns + away_ns * percent // 100)
        owed_ns = self.longest_ns * percent // (self._weight + percent)
        most_ns = max(self._settings.slice_ns * (100 - percent) // 100, owed_ns)
        return min(standing.lag_ns, most_ns) if away_ns < 4 * self._settings.slice_ns else 0

    def resume(self, standings: Iterable[Standing], longest_ns: int) -> None:
        """All that compete are as much behind or ahead as they took along, less what that adds up to; what one used at
        once lately, ``longest_ns`` at most, counts as a turn."""
        self.longest_ns = longest_ns
        virtual_time = self.virtual_time
        for standing in standings:
            virtual = virtual_time - standing.lag_ns * 100 // standing.request_percent - standing.v
            standing.v += virtual
            standing.deadline += virtual
            self._weighted_v += standing.request_percent * virtual

    def leave(self, standing: Standing, now_ns: int) -> None:
        """Takes it out of the competition; its lag stays with it."""
        standing.lag_ns = self.lag_ns(standing)
        standing.left_ns = now_ns
        self._last_v = self.virtual_time
        self._weight -= standing.request_percent
        self._weighted_v -= standing.request_percent * standing.v
        standing.active = False

    def charge(self, standing: Standing, held_ns: int, is_turn: bool = True) -> None:
        """Charges held time to one that competes. ``is_turn``: False where somebody may have run on meanwhile, so that
        it is no sign of what turns of it cost, and nothing that was owed to it."""
        percent = standing.request_percent
        virtual = held_ns * 100 // percent
        standing.v += virtual
        standing.deadline += virtual
        standing.budget_ns -= held_ns
        self._weighted_v += percent * virtual
        self.longest_ns = fade(self.longest_ns, held_ns)
        if not is_turn:
            return
        standing.turn_ns += held_ns
        if standing.is_long:
            self._long_v += held_ns * 100 // self._weight
        elif standing.turn_ns > self._long_ns:
            standing.is_long = True
            self._long_v += standing.turn_ns * 100 // self._weight
        # What is taken off its charge is not owed to it by long turns.
        standing.caught_up_v = min(standing.caught_up_v + max(0, virtual), self._long_v)
        if standing.is_long and standing.turn_ns > self.longest_ns:
            self.longest_ns = standing.turn_ns

    def charge_later(self, standing: Standing, held_ns: int) -> None:
        """Charges time of which it is known afterwards that it was one's, or below 0 not, whether it competes now or
        not."""
        if standing.active:
            self.charge(standing, held_ns)
            self.cap_debt(standing)
        else:
            standing.lag_ns -= held_ns

    def is_long(self, standing: Standing) -> bool:
        """Whether its turns are long, as a rule."""
        return standing.usual_turn_ns > self._long_ns

    def would_be_long(self, standing: Standing, more_ns: int) -> bool:
        """Whether its turn is long once it has cost so much more."""
        return standing.turn_ns + more_ns > self._long_ns

    def change_request(self, standing: Standing, request_percent: int) -> None:
        """Sets another request. One that competes keeps its v, and is behind or ahead by as much virtual time."""
        if standing.active:
            self._weight += request_percent - standing.request_percent
            self._weighted_v += (request_percent - standing.request_percent) * standing.v
        standing.request_percent = request_percent
        self._set_deadline(standing)

    def cap_debt(self, standing: Standing) -> None:
        """Forgives what it owes beyond one window: an older debt shows in no window, and would only starve it."""
        excess_ns = -self.lag_ns(standing) - self._settings.window_ns
        if excess_ns > 0:
            percent = standing.request_percent
            # V goes back with its v, though by less.
            virtual = excess_ns * 100 * self._weight // (percent * (self._weight - percent))
            standing.v -= virtual
            standing.deadline -= virtual
            self._weighted_v -= percent * virtual

    def end_turn(self, standing: Standing) -> None:
        """Learns from a turn that is over what its turns cost, for the deadlines to come."""
        shorter_ns = standing.usual_turn_ns - standing.turn_ns
        standing.usual_turn_ns -= shorter_ns >> 3 if shorter_ns > 0 else shorter_ns
        standing.known = True
        standing.is_long = False
        standing.turn_ns = 0
        self._set_deadline(standing)

    def pick(self, candidates: Iterable[S]) -> S | None:
        """The candidate with v ≤ V whose deadline is earliest, the first of equals, of those alone whose turns are not
        long where one of them is owed something; where none has v ≤ V (those that have cannot be granted now), the one
        with the least v. None without candidates."""
        virtual_time, long_v = self.virtual_time, self._long_v
        best: S | None = None
        best_short: S | None = None
        ahead: S | None = None
        is_owed = False
        for standing in candidates:
            if standing.v > virtual_time:
                if ahead is None or standing.v < ahead.v:
                    ahead = standing
                continue
            if best is None or standing.deadline < best.deadline:
                best = standing
            if standing.known and not self.is_long(standing):
                is_owed = is_owed or standing.caught_up_v < long_v
                if best_short is None or standing.deadline < best_short.deadline:
                    best_short = standing
        return (best_short if is_owed else best) or ahead

    def pick_urgent(self, candidates: Iterable[S], now_ns: int) -> S | None:
        """The candidate of the latency class with budget left whose period ends first."""
        best: S | None = None
        for standing in candidates:
            if is_urgent(standing, now_ns, self._settings) and (
                best is None or standing.period_end_ns < best.period_end_ns
            ):
                best = standing
        return best

    def _set_deadline(self, standing: Standing) -> None:
        slice_ns = self._settings.slice_ns
        cost_ns = min(max(standing.usual_turn_ns, slice_ns), RECKONED_SLICES * slice_ns)
        standing.deadline = standing.v + cost_ns * 100 // standing.request_percent
