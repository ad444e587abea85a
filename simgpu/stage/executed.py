"""What each program executed on a simulated GPU, and when."""

from collections.abc import Iterable
from typing import NamedTuple


class Interval(NamedTuple):
    """What a GPU ran for one workload, without a break."""

    name: str
    begin_ns: int
    end_ns: int


def executed_ns(intervals: Iterable[Interval], begin_ns: int, end_ns: int) -> dict[str, int]:
    """GPU time by workload within [begin, end)."""
    total: dict[str, int] = {}
    for interval in intervals:
        part_ns = min(interval.end_ns, end_ns) - max(interval.begin_ns, begin_ns)
        if part_ns > 0:
            total[interval.name] = total.get(interval.name, 0) + part_ns
    return total
