"""How much of something may be done in a time: a leaky bucket."""


class Budget:
    """``rate_per_s`` of it on average, and up to ``burst`` at once."""

    __slots__ = ("_burst_ns", "_interval_ns", "_paid_until_ns")

    def __init__(self, rate_per_s: int, burst: int) -> None:
        self._interval_ns = 1_000_000_000 // rate_per_s
        self._burst_ns = burst * self._interval_ns
        self._paid_until_ns = 0

    def spend(self, now_ns: int, count: int = 1) -> bool:
        """Does it this often; False where that is more than there was left."""
        self._paid_until_ns = max(self._paid_until_ns, now_ns) + count * self._interval_ns
        return self._paid_until_ns <= now_ns + self._burst_ns
