"""What an allocation held, used and waited for in the last seconds, in bounded memory."""

from dataclasses import dataclass

BUCKETS = 100
"""A status that is a hundredth of a window old is as good as a fresh one."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a window holds: ns, and the longest wait that ended in it."""

    held_ns: int
    gpu_ns: int
    longest_wait_ns: int


class Window:
    """A sliding window over time in buckets: intervals are split at the buckets' edges, so that a sum never exceeds
    what fits into it; of the oldest bucket the part that is still inside counts, as if it had been filled evenly."""

    __slots__ = ("_bucket_ns", "_gpu", "_held", "_last", "_waits")

    def __init__(self, window_ns: int, now_ns: int) -> None:
        self._bucket_ns = max(1, window_ns // BUCKETS)
        # One more bucket than the window has: the oldest counts in part.
        self._held = [0] * (BUCKETS + 1)
        self._gpu = [0] * (BUCKETS + 1)
        self._waits = [0] * (BUCKETS + 1)
        self._last = now_ns // self._bucket_ns

    def add_held(self, begin_ns: int, end_ns: int) -> None:
        """Notes that the device was held from begin to end."""
        self._advance(end_ns)
        self._spread(self._held, begin_ns, end_ns, end_ns - begin_ns)

    def add_gpu(self, begin_ns: int, end_ns: int, gpu_ns: int) -> None:
        """Notes GPU time that was used at some time from begin to end."""
        self._advance(end_ns)
        self._spread(self._gpu, begin_ns, end_ns, gpu_ns)

    def add_wait(self, end_ns: int, wait_ns: int) -> None:
        """Notes a wait that ended."""
        self._advance(end_ns)
        index = self._last % (BUCKETS + 1)
        if wait_ns > self._waits[index]:
            self._waits[index] = wait_ns

    def sums(self, now_ns: int) -> Sums:
        """The window that ends now. GPU time is never more than what was held."""
        self._advance(now_ns)
        oldest = (self._last + 1) % (BUCKETS + 1)
        # Of the oldest bucket, the part that the newest has not yet reached.
        outside_ns = now_ns - self._last * self._bucket_ns
        inside_ns = max(0, self._bucket_ns - outside_ns)
        held_ns = sum(self._held) - self._held[oldest] + self._held[oldest] * inside_ns // self._bucket_ns
        gpu_ns = sum(self._gpu) - self._gpu[oldest] + self._gpu[oldest] * inside_ns // self._bucket_ns
        return Sums(held_ns, min(gpu_ns, held_ns), max(self._waits))

    def _advance(self, now_ns: int) -> None:
        bucket = now_ns // self._bucket_ns
        if bucket <= self._last:
            return
        for stale in range(max(self._last + 1, bucket - BUCKETS), bucket + 1):
            index = stale % (BUCKETS + 1)
            self._held[index] = self._gpu[index] = self._waits[index] = 0
        self._last = bucket

    def _spread(self, row: list[int], begin_ns: int, end_ns: int, amount_ns: int) -> None:
        length_ns = end_ns - begin_ns
        first, last = begin_ns // self._bucket_ns, (end_ns - 1) // self._bucket_ns
        if first >= last:
            # A report may be of an instant: then all of it belongs there.
            row[max(first, self._last - BUCKETS) % (BUCKETS + 1)] += amount_ns
            return
        for bucket in range(max(first, self._last - BUCKETS), last + 1):
            begin_in_ns = max(begin_ns, bucket * self._bucket_ns)
            end_in_ns = min(end_ns, (bucket + 1) * self._bucket_ns)
            until_begin_ns = amount_ns * (begin_in_ns - begin_ns) // length_ns
            until_end_ns = amount_ns * (end_in_ns - begin_ns) // length_ns
            row[bucket % (BUCKETS + 1)] += until_end_ns - until_begin_ns
