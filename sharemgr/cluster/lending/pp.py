"""Peak prediction, as published: where `cbp` has no room, and the free memory resembles what it was ten seconds before,
a pod comes if what it declares fits into what a line fitted to the two predicts. (Ferikoglou et al., "Resource-aware
GPU scheduling in Kubernetes".)

A bad choice where `cbp` is: it admits more.
"""

import numpy as np

from sharemgr.cluster.lending import cbp
from sharemgr.cluster.lending.card import Card, Policy, Profiled, Room, by_limit
from sharemgr.cluster.lending.window import since
from sharemgr.cluster.placement.rows import Floats

LAG_S = 10
LIKENESS_MIN = 0.35


def room(card: Card, profiles: Profiled, now_s: float) -> Room:
    """See the module."""
    before = cbp.room(card, profiles, now_s)
    free_mib = card.usable_mib - since(card.use, card.last_bound_at_s, now_s)
    predicted_mib = predict(free_mib)
    if predicted_mib is None or predicted_mib <= before.mib:
        return before
    return Room(predicted_mib, "predicted free memory", before.until_s)


def predict(free_mib: Floats) -> float | None:
    """The next value of a series, one value a second, by a line through pairs that are ten seconds apart; None where
    they are not alike."""
    if len(free_mib) < LAG_S + 2:
        return None
    earlier, later = free_mib[:-LAG_S], free_mib[LAG_S:]
    from_mean, to_mean = earlier.mean(), later.mean()
    spread = float(np.square(earlier - from_mean).sum())
    other = float(np.square(later - to_mean).sum())
    together = float(((earlier - from_mean) * (later - to_mean)).sum())
    if not spread or not other or together / (spread * other) ** 0.5 <= LIKENESS_MIN:
        return None
    return float(to_mean + together / spread * (free_mib[-LAG_S] - from_mean))


POLICY = Policy(room, by_limit)
