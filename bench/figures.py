"""From what was executed to a figure. Pure: intervals in, numbers out. Times are nanoseconds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from edgeshare.cli.demo_plan import Interval, executed_ns


def percentile(values: Iterable[float], percent: float) -> float:
    """The least value that ``percent`` of all do not exceed (nearest rank); ValueError for none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values to take a percentile of")
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]


def median(values: Iterable[float]) -> float:
    return percentile(values, 50)


def busy_percent(intervals: Iterable[Interval], begin_ns: int, end_ns: int) -> float:
    """How much of [begin, end) the GPU ran anything."""
    return 100 * sum(executed_ns(intervals, begin_ns, end_ns).values()) / (end_ns - begin_ns)


def hand_overs_ns(intervals: Sequence[Interval], begin_ns: int, end_ns: int) -> list[int]:
    """Each gap from the end of one client's last to the begin of another's first, within [begin, end).

    ``intervals`` are in the order in which the GPU ran them.
    """
    inside = [i for i in intervals if i.begin_ns >= begin_ns and i.end_ns <= end_ns]
    return [after.begin_ns - before.end_ns for before, after in pairwise(inside) if before.name != after.name]


def gap_after_last_ns(intervals: Sequence[Interval], client: str) -> int | None:
    """From the end of the last that a client ran to the begin of what ran next; None where nothing did, or
    it ran nothing. ``intervals`` are in the order in which the GPU ran them."""
    last = max((index for index, each in enumerate(intervals) if each.name == client), default=None)
    if last is None or last + 1 == len(intervals):
        return None
    return intervals[last + 1].begin_ns - intervals[last].end_ns


def worst_share_error_percent(
    intervals: Sequence[Interval],
    expected_percent: Mapping[str, float],
    begin_ns: int,
    end_ns: int,
    *,
    window_ns: int,
    step_ns: int,
) -> float:
    """The largest distance of any client from its share, over all windows within [begin, end), in points.

    A client that is not expected must get nothing. ValueError where not one window fits.
    """
    if begin_ns + window_ns > end_ns:
        raise ValueError("the run is shorter than one window")
    # One pass: GPU time up to each step's edge, then differences.
    edges = list(range(begin_ns, end_ns + 1, step_ns))
    if window_ns % step_ns:
        raise ValueError("a window must be a whole number of steps")
    up_to: dict[str, list[int]] = {}
    for interval in intervals:
        steps = up_to.setdefault(interval.name, [0] * len(edges))
        first = max(0, (interval.begin_ns - begin_ns) // step_ns)
        for index in range(first, len(edges) - 1):
            part_ns = min(interval.end_ns, edges[index + 1]) - max(interval.begin_ns, edges[index])
            if part_ns <= 0:
                break
            steps[index + 1] += part_ns
    for steps in up_to.values():
        for index in range(1, len(steps)):
            steps[index] += steps[index - 1]
    width = window_ns // step_ns
    worst = 0.0
    for client in expected_percent.keys() | up_to.keys():
        steps = up_to.get(client, [0] * len(edges))
        for index in range(len(edges) - width):
            got_percent = 100 * (steps[index + width] - steps[index]) / window_ns
            worst = max(worst, abs(got_percent - expected_percent.get(client, 0.0)))
    return worst


def division_error_percent(got_ns: Mapping[str, int], expected_percent: Mapping[str, float]) -> float:
    """The largest distance of any client from its part of what was executed, in points: what is off about who got it,
    whatever was lost on the way. ValueError where nothing was executed."""
    total_ns = sum(got_ns.values())
    if total_ns == 0:
        raise ValueError("nothing was executed")
    whole_percent = sum(expected_percent.values())
    return max(
        abs(whole_percent * got_ns.get(client, 0) / total_ns - expected_percent.get(client, 0.0))
        for client in expected_percent.keys() | got_ns.keys()
    )
