"""A card's memory as a monitoring system tells it: a value each second, the last that was scraped."""

from math import ceil, floor

import numpy as np

from sharemgr.cluster.lending.card import Use
from sharemgr.cluster.placement.rows import Floats

WINDOW_MIN_S = 20


def since(use: Use, bound_at_s: float, now_s: float) -> Floats:
    """The memory in use at each whole second from a bind until now, of the last twenty at least; MiB. Empty where there
    is no sample."""
    samples = use.samples
    if not samples:
        return np.empty(0)
    last = floor(now_s)
    first = max(ceil(samples[0].at_s), min(ceil(bound_at_s) if bound_at_s > 0 else 0, last - WINDOW_MIN_S + 1))
    begin = len(samples) - 1
    while begin and samples[begin].at_s > first:
        begin -= 1
    values = [sample.used_mib for sample in samples[begin:]]
    ends = [min(ceil(sample.at_s), last + 1) for sample in samples[begin + 1 :]] + [last + 1]
    starts = [first, *(max(first, end) for end in ends[:-1])]
    return np.repeat(values, np.subtract(ends, starts).clip(min=0))
