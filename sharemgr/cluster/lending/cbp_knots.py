"""Correlation-based prediction, the original: a pod comes where its memory in an earlier run and that of each pod there
do not rise and fall together (correlation below 0.5); each counts for its 80th percentile. A pod of which no run is
known counts for its limit, as in `res_ag`. (Kube-Knots: Thinakaran et al., CLUSTER 2019.)

A bad choice for pods that hold what they take: the 80th percentile of a short run is that of its ramp, and its peak,
which has to fit as well, is above it.
"""

from collections.abc import Sequence

import numpy as np

from sharemgr.cluster.lending.card import Asked, Card, Policy, Profiled, Resident, Room
from sharemgr.cluster.lending.cbp import percentile

CORRELATION_MAX = 0.5
PAIRS_MIN = 3
"""Of samples that a correlation is taken of."""


def room(card: Card, profiles: Profiled, now_s: float) -> Room:
    """See the module."""
    held = sum(resident.promised_mib for resident in card.residents)
    return Room(card.usable_mib - held, "what its pods were promised")


def charge(asked: Asked, card: Card, profiles: Profiled, now_s: float) -> tuple[int, str]:
    """What a pod counts for: its 80th percentile where it is unlike all that are there, else its limit."""
    profile = profiles.get(asked.key)
    if profile is None or not profile.use_mib:
        return asked.limit_mib, "its limit: no run of it is known"
    if any(
        correlation(profile.use_mib, _last(each, len(profile.use_mib))) >= CORRELATION_MAX for each in card.residents
    ):
        return asked.limit_mib, "its limit: a pod there rises and falls as it does"
    usual_mib = round(percentile(np.array(profile.use_mib, np.float64)))
    return max(asked.guarantee_mib, min(usual_mib, asked.limit_mib)), "80th percentile of its last run"


def _last(resident: Resident, count: int) -> list[float]:
    return [sample.used_mib for sample in resident.use.samples[-count:]]


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Of as many values of both as there are; 0 where one of them does not change, or there are too few."""
    pairs = min(len(one), len(other))
    if pairs < PAIRS_MIN:
        return 0.0
    left, right = np.array(one[:pairs], np.float64), np.array(other[:pairs], np.float64)
    left, right = left - left.mean(), right - right.mean()
    size = float(np.square(left).sum() * np.square(right).sum()) ** 0.5
    return float((left * right).sum() / size) if size else 0.0


POLICY = Policy(room, charge)
