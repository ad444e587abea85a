"""How much of something may be done in a time: a leaky bucket."""

from edgeshare.units import NS_PER_S


class Budget:
    """``rate`` of it in ``per_s`` seconds on average, and up to ``burst`` at once."""

    __slots__ = ("_burst_ns", "_interval_ns", "_paid_until_ns")

    def __init__(self, rate: int, burst: int, per_s: int = 1) -> None:
        self._interval_ns = per_s * NS_PER_S // rate
        self._burst_ns = burst * self._interval_ns
        self._paid_until_ns = 0

    def spend(self, now_ns: int, count: int = 1) -> bool:
        """Does it this often; False where that is more than there was left."""
        self._paid_until_ns = max(self._paid_until_ns, now_ns) + count * self._interval_ns
        return self._paid_until_ns <= now_ns + self._burst_ns

    def wait_ns(self, now_ns: int) -> int:
        """How long it takes until it may be done again; 0: it may."""
        return max(0, self._paid_until_ns - self._burst_ns - now_ns)
