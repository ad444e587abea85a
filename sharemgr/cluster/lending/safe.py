"""Our own, the default: a pod counts for what it may still come to hold, so that nobody who was let in finds the memory
gone.

    settled    its use has been of one level for 6 s, and it has been there for 24 s, or for as long as its program ever
               took to its peak
    in flight  it has not settled
    room       what is usable, less what all pods there may come to hold: each at least what it was seen to hold and
               what it is guaranteed, at most its limit

    may come to hold   settled                             in flight
    program known      the profile's peak; if it was seen  1.25 of the peak; 1.1 while a settled pod of its program is
                       above it: 1.05 of what was seen     on this GPU, of the peak or what that one was seen to hold
    not known          1.5 of what was seen                1.5 of what a settled pod of its program was seen to hold on
                                                           this GPU; else its limit

A pod that has waited 220 s holds back those behind it, so that small ones do not pass a large one for ever.

Samples that are late, missing or absurd lower nothing: what a pod may come to hold falls only by samples of that pod
itself, taken since it was bound.

The figures were found by simulation: docs/develop/replay.md has what each single fault of the world does to them. They
hold where a profile is 20 % low (1.25), or a peak comes late that is half as high again as what was seen (1.5), not
where both do. A fixed reserve instead of the margin of pods in flight costs more and holds less.

A bad choice for a cold start where much more is declared than used (the first pods of a program count for their limit
until one has settled), where programs run for less time than they take to settle, for a first run whose peak comes late
and is above 1.5 of what was seen, and for frameworks that take most of what they are shown, whatever they need.
"""

from collections.abc import Sequence
from math import inf

from sharemgr.cluster.lending.card import Asked, Card, Policy, Profiled, Resident, Room
from sharemgr.cluster.state.profiles import FLAT_MIN_S

SETTLING_S = 24.0
SETTLED = 1.05
IN_FLIGHT = 1.25
CONFIRMED = 1.1
UNKNOWN = 1.5
PATIENCE_S = 220.0


def room(card: Card, profiles: Profiled, now_s: float) -> Room:
    """See the module."""
    settled = [_is_settled(each, profiles, now_s) for each in card.residents]
    siblings = _seen_mib(card, settled)
    charges, until_s = 0, inf
    for resident, is_settled in zip(card.residents, settled, strict=True):
        charges += _of_resident(resident, is_settled, profiles, siblings)
        if not is_settled:
            until_s = min(until_s, _settles_s(resident, profiles, now_s))
    return Room(card.usable_mib - charges, "less what its pods may come to hold", until_s)


def charge(asked: Asked, card: Card, profiles: Profiled, now_s: float) -> tuple[int, str]:
    """Of a pod that asks: it will be in flight."""
    sibling_mib = settled_mib(card, profiles, now_s).get(asked.key, 0)
    mib, why = in_flight(asked, known_mib(asked, profiles), sibling_mib)
    return within(asked, mib), why


def known_mib(asked: Asked, profiles: Profiled) -> int:
    """The peak of a pod's program; 0 where it is not known."""
    profile = profiles.get(asked.key)
    return (profile and profile.peak_mib) or 0


def in_flight(asked: Asked, peak_mib: int, sibling_mib: int) -> tuple[float, str]:
    """What a pod may come to hold before it has settled, and by what it is known: the peak of its program and what
    settled pods of its program there were seen to hold, 0 where that is not known."""
    if peak_mib and sibling_mib:
        return CONFIRMED * max(peak_mib, sibling_mib), "its profile, and a settled pod of its program"
    if peak_mib:
        return IN_FLIGHT * peak_mib, "its profile"
    if sibling_mib:
        return UNKNOWN * sibling_mib, "a settled pod of its program"
    return asked.limit_mib, "its limit: its program is not known"


def within(asked: Asked, mib: float) -> int:
    """At least the guarantee, at most the limit."""
    return max(asked.guarantee_mib, min(asked.limit_mib, round(mib)))


def settled_mib(card: Card, profiles: Profiled, now_s: float) -> dict[str, int]:
    """Key → the most that a settled pod of that program was seen to hold there."""
    return _seen_mib(card, [_is_settled(each, profiles, now_s) for each in card.residents])


def _seen_mib(card: Card, settled: Sequence[bool]) -> dict[str, int]:
    found: dict[str, int] = {}
    for resident, is_settled in zip(card.residents, settled, strict=True):
        if is_settled:
            found[resident.asked.key] = max(found.get(resident.asked.key, 0), resident.use.seen_mib)
    return found


def _of_resident(resident: Resident, is_settled: bool, profiles: Profiled, siblings: dict[str, int]) -> int:
    asked, seen_mib = resident.asked, resident.use.seen_mib
    peak_mib, sibling_mib = known_mib(asked, profiles), siblings.get(asked.key, 0)
    if not is_settled:
        mib = in_flight(asked, max(peak_mib, seen_mib) if peak_mib else 0, sibling_mib)[0]
    elif peak_mib:
        mib = peak_mib if seen_mib <= peak_mib else SETTLED * seen_mib
    else:
        mib = UNKNOWN * sibling_mib
    return within(asked, max(mib, seen_mib))


def _is_settled(resident: Resident, profiles: Profiled, now_s: float) -> bool:
    return resident.use.flat_s >= FLAT_MIN_S and now_s >= _steady_from_s(resident, profiles)


def _steady_from_s(resident: Resident, profiles: Profiled) -> float:
    """When it is old enough to have settled."""
    profile = profiles.get(resident.asked.key)
    return resident.bound_at_s + max(SETTLING_S, profile.time_to_peak_s if profile else 0.0)


def _settles_s(resident: Resident, profiles: Profiled, now_s: float) -> float:
    """When one that has not settled does, if no sample says otherwise."""
    from_s = _steady_from_s(resident, profiles)
    return from_s if now_s < from_s and resident.use.flat_s >= FLAT_MIN_S else inf


POLICY = Policy(room, charge, patience_s=PATIENCE_S)
