"""Correlation-based prediction, as published: while the free memory is steady, a pod comes if what it declares fits
above the 80th percentile of what is in use. Else as `res_ag`. (Ferikoglou et al., "Resource-aware GPU scheduling in
Kubernetes"; despite the name it is the coefficient of variation that is tested.)

A bad choice where pods come soon after each other: a pod takes its memory twenty seconds after it came, and until then
the window shows it as free. Those that came too many crash.
"""

import numpy as np

from sharemgr.cluster.lending import res_ag
from sharemgr.cluster.lending.card import Card, Policy, Profiled, Room, by_limit
from sharemgr.cluster.lending.window import since
from sharemgr.cluster.placement.rows import Floats

VARIATION_MAX = 0.5
PERCENTILE = 80


def room(card: Card, profiles: Profiled, now_s: float) -> Room:
    """See the module."""
    until_s = now_s // 1 + 1
    declared = res_ag.room(card, profiles, now_s)
    used_mib = since(card.use, card.last_bound_at_s, now_s)
    if not used_mib.size or not is_steady(card.usable_mib - used_mib):
        return Room(declared.mib, f"{declared.reason}: free memory is not steady", until_s)
    unused = Room(card.usable_mib - percentile(used_mib), "80th percentile of what is in use", until_s)
    return max(unused, declared._replace(until_s=until_s), key=lambda each: each.mib)


def is_steady(free_mib: Floats) -> bool:
    """Whether it varies little for how much it is."""
    return bool(free_mib.std() < VARIATION_MAX * free_mib.mean())


def percentile(values: Floats) -> float:
    """The 80th, interpolated; as numpy has it, in a twentieth of the time, since it is asked for at each look."""
    ordered = np.sort(values)
    place = (len(ordered) - 1) * PERCENTILE / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


POLICY = Policy(room, by_limit)
