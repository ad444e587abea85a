"""What an allocation held, used and waited for in the last seconds, in bounded memory."""

from dataclasses import dataclass

BUCKETS = 100
"""Of a window. What a status shows is exact to a hundredth of it."""

_SLOTS = BUCKETS + 1
# One more than the window has: of the oldest, the part counts that the newest has not reached.


@dataclass(frozen=True, slots=True)
class Sums:
    """What a window holds, in ns; the longest wait is of those that ended in it."""

    held_ns: int
    gpu_ns: int
    longest_wait_ns: int


class Window:
    """A sliding window of time in buckets. What lasts is split at their edges, so that a sum is never more than fits
    into the window; the oldest bucket counts as if it had been filled evenly."""

    __slots__ = ("_bucket_ns", "_gpu", "_held", "_newest", "_newest_begin_ns", "_newest_end_ns", "_slot", "_waits")

    def __init__(self, window_ns: int, now_ns: int) -> None:
        self._bucket_ns = max(1, window_ns // BUCKETS)
        self._held = [0] * _SLOTS
        self._gpu = [0] * _SLOTS
        self._waits = [0] * _SLOTS
        self._start(now_ns // self._bucket_ns)

    def add_held(self, begin_ns: int, end_ns: int) -> None:
        """The device was held from begin to end. The end is not before any time given before."""
        self._add(self._held, begin_ns, end_ns, end_ns - begin_ns)

    def add_gpu(self, begin_ns: int, end_ns: int, gpu_ns: int) -> None:
        """GPU time was used at some time from begin to end."""
        self._add(self._gpu, begin_ns, end_ns, gpu_ns)

    def add_wait(self, end_ns: int, wait_ns: int) -> None:
        """A wait has ended."""
        if end_ns >= self._newest_end_ns:
            self._advance(end_ns)
        self._waits[self._slot] = max(self._waits[self._slot], wait_ns)

    def sums(self, now_ns: int) -> Sums:
        """The window that ends now."""
        if now_ns >= self._newest_end_ns:
            self._advance(now_ns)
        oldest = (self._slot + 1) % _SLOTS
        inside_ns = self._newest_end_ns - now_ns
        held_ns = sum(self._held) - self._held[oldest] + self._held[oldest] * inside_ns // self._bucket_ns
        gpu_ns = sum(self._gpu) - self._gpu[oldest] + self._gpu[oldest] * inside_ns // self._bucket_ns
        return Sums(held_ns, gpu_ns, max(self._waits))

    def _add(self, row: list[int], begin_ns: int, end_ns: int, amount_ns: int) -> None:
        if end_ns >= self._newest_end_ns:
            self._advance(end_ns)
        if begin_ns >= self._newest_begin_ns:
            row[self._slot] += amount_ns
            return
        length_ns = end_ns - begin_ns
        for bucket in range(max(begin_ns // self._bucket_ns, self._newest - BUCKETS), self._newest + 1):
            from_ns = max(begin_ns, bucket * self._bucket_ns)
            to_ns = min(end_ns, (bucket + 1) * self._bucket_ns)
            # As differences of sums, so that nothing is lost by rounding.
            row[bucket % _SLOTS] += (
                amount_ns * (to_ns - begin_ns) // length_ns - amount_ns * (from_ns - begin_ns) // length_ns
            )

    def _advance(self, now_ns: int) -> None:
        bucket = now_ns // self._bucket_ns
        for stale in range(max(self._newest + 1, bucket - BUCKETS), bucket + 1):
            self._held[stale % _SLOTS] = self._gpu[stale % _SLOTS] = self._waits[stale % _SLOTS] = 0
        self._start(bucket)

    def _start(self, bucket: int) -> None:
        self._newest = bucket
        self._slot = bucket % _SLOTS
        self._newest_begin_ns = bucket * self._bucket_ns
        self._newest_end_ns = self._newest_begin_ns + self._bucket_ns
