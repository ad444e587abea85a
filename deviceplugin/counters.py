"""What the plugin did since it started, as numbers that only grow."""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

from edgeshare.contract.units import NS_PER_S

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds. An Allocate takes a few milliseconds: a small machine's disk is most of it."""


class Durations:
    """How long calls took."""

    def __init__(self) -> None:
        self.total_ns = 0
        self._counts = [0] * (len(BUCKETS_S) + 1)

    def add(self, duration_ns: int) -> None:
        """Counts a duration."""
        self.total_ns += duration_ns
        self._counts[bisect_left(BUCKETS_S, duration_ns / NS_PER_S)] += 1

    def cumulative(self) -> list[int]:
        """How many took at most as long as each bound; the last number is of all."""
        return list(accumulate(self._counts))


class Counters:
    """Counts for the metrics."""

    def __init__(self) -> None:
        self.allocations = 0
        """Calls of Allocate that handed units out."""
        self.refusals: Counter[tuple[str, str]] = Counter()
        """By call, and by the kind of its error."""
        self.allocate = Durations()
        """Of every Allocate, those that were refused included."""
        self.registrations = 0
        """Times that the kubelet took a list."""
