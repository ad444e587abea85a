"""What an allocation held, used and waited for in the last seconds and since it began, in bounded memory."""

from dataclasses import dataclass

BUCKETS = 100
"""Of a window. What a status shows is exact to a hundredth of it."""

_SLOTS = BUCKETS + 1
# One more than the window has: of the oldest, the part counts that the newest has not reached.


@dataclass(frozen=True, slots=True)
class Sums:
    """What a window holds, in ns: of waits those that are over, the longest of which ended in it."""

    held_ns: int
    gpu_ns: int
    waited_ns: int
    longest_wait_ns: int


class Row:
    """One thing that is added up, by bucket: ``all_ns`` since it began, of which no bucket has ``past_ns`` any more."""

    __slots__ = ("all_ns", "ns", "past_ns")

    def __init__(self) -> None:
        self.ns = [0] * _SLOTS
        self.all_ns = self.past_ns = 0


class Window:
    """A sliding window of time in buckets. What lasts is split at their edges, so that a sum is never more than fits
    into the window; the oldest bucket counts as if it had been filled evenly."""

    __slots__ = (
        "_bucket_ns",
        "_newest",
        "_newest_begin_ns",
        "_newest_end_ns",
        "_slot",
        "_waits",
        "gpu",
        "held",
        "waited",
    )

    def __init__(self, window_ns: int, now_ns: int) -> None:
        self._bucket_ns = max(1, window_ns // BUCKETS)
        self.held, self.gpu, self.waited = Row(), Row(), Row()
        self._waits = [0] * _SLOTS
        self._start(now_ns // self._bucket_ns)

    def add_held(self, begin_ns: int, end_ns: int) -> None:
        """The device was held from begin to end."""
        self._add(self.held, begin_ns, end_ns, end_ns - begin_ns)

    def add_gpu(self, begin_ns: int, end_ns: int, gpu_ns: int) -> None:
        """GPU time was used at some time from begin to end."""
        self._add(self.gpu, begin_ns, end_ns, gpu_ns)

    def add_used(self, begin_ns: int, end_ns: int, gpu_ns: int, held_ns: int) -> None:
        """GPU time was used at some time from begin to end, and it was charged with so much of the device."""
        self._add(self.gpu, begin_ns, end_ns, gpu_ns)
        self._add(self.held, begin_ns, end_ns, held_ns)

    def add_wait(self, begin_ns: int, end_ns: int) -> None:
        """The allocation waited from begin to end."""
        self._add(self.waited, begin_ns, end_ns, end_ns - begin_ns)
        self._waits[self._slot] = max(self._waits[self._slot], end_ns - begin_ns)

    def inside_ns(self, lasts_ns: int) -> int:
        """How much of what has lasted for so long until now is in the window."""
        return min(lasts_ns, BUCKETS * self._bucket_ns)

    def sums(self, now_ns: int) -> Sums:
        """The window that ends now."""
        if now_ns >= self._newest_end_ns:
            self._advance(now_ns)
        return Sums(
            self._sum(self.held, now_ns),
            self._sum(self.gpu, now_ns),
            self._sum(self.waited, now_ns),
            max(self._waits),
        )

    def _sum(self, of: Row, now_ns: int) -> int:
        oldest_ns = of.ns[(self._slot + 1) % _SLOTS]
        return of.all_ns - of.past_ns - oldest_ns + oldest_ns * (self._newest_end_ns - now_ns) // self._bucket_ns

    def _add(self, to: Row, begin_ns: int, end_ns: int, amount_ns: int) -> None:
        if end_ns >= self._newest_end_ns:
            self._advance(end_ns)
        row = to.ns
        to.all_ns += amount_ns
        if begin_ns >= self._newest_begin_ns:
            row[self._slot] += amount_ns
            return
        length_ns = end_ns - begin_ns
        first = max(begin_ns // self._bucket_ns, self._newest - BUCKETS)
        before_ns = min(end_ns, first * self._bucket_ns) - begin_ns
        if before_ns > 0:
            to.past_ns += amount_ns * before_ns // length_ns
        for bucket in range(first, end_ns // self._bucket_ns + 1):
            from_ns = max(begin_ns, bucket * self._bucket_ns)
            to_ns = min(end_ns, (bucket + 1) * self._bucket_ns)
            # As differences of sums, so that nothing is lost by rounding.
            row[bucket % _SLOTS] += (
                amount_ns * (to_ns - begin_ns) // length_ns - amount_ns * (from_ns - begin_ns) // length_ns
            )

    def _advance(self, now_ns: int) -> None:
        bucket = now_ns // self._bucket_ns
        for stale in range(max(self._newest + 1, bucket - BUCKETS), bucket + 1):
            slot = stale % _SLOTS
            for row in (self.held, self.gpu, self.waited):
                row.past_ns += row.ns[slot]
                row.ns[slot] = 0
            self._waits[slot] = 0
        self._start(bucket)

    def _start(self, bucket: int) -> None:
        self._newest = bucket
        self._slot = bucket % _SLOTS
        self._newest_begin_ns = bucket * self._bucket_ns
        self._newest_end_ns = self._newest_begin_ns + self._bucket_ns
