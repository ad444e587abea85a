"""From what was executed to a figure. Pure: intervals in, numbers out. Times are nanoseconds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from simgpu.stage.executed import Interval, executed_ns


def percentile(values: Iterable[float], percent: float) -> float:
    """The least value that ``percent`` of all do not exceed (nearest rank); ValueError for none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values to take a percentile of")
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]


def median(values: Iterable[float]) -> float:
    return percentile(values, 50)


def within(counts: Mapping[float, float], share: float) -> float:
    """The bound within which so large a part of a histogram's cumulative counts lies, interpolated in its bucket."""
    wanted, below, below_count = share * max(counts.values()), 0.0, 0.0
    for bound, count in sorted(counts.items()):
        if count >= wanted:
            part = (wanted - below_count) / (count - below_count)
            return below if bound == float("inf") else below + (bound - below) * part
        below, below_count = bound, count
    return below


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


def longest_gap_ns(intervals: Iterable[Interval], client: str, begin_ns: int, end_ns: int) -> int:
    """The longest time within [begin, end) in which a client ran nothing. ``intervals`` are in the order in which the
    GPU ran them."""
    longest_ns, last_ns = 0, begin_ns
    for interval in intervals:
        if interval.name == client and interval.end_ns > begin_ns:
            longest_ns = max(longest_ns, min(interval.begin_ns, end_ns) - last_ns)
            last_ns = max(last_ns, interval.end_ns)
    return max(longest_ns, end_ns - last_ns)


def held_turns(intervals: Iterable[Interval]) -> list[Interval]:
    """Each client's turns, from the begin of its first to the end of its last: what it ran without another between,
    its gaps included. ``intervals`` are in the order in which the GPU ran them."""
    turns: list[Interval] = []
    for interval in intervals:
        last = turns[-1] if turns else None
        if last and last.name == interval.name:
            turns[-1] = last._replace(end_ns=interval.end_ns)
        else:
            turns.append(interval)
    return turns


def running_at(intervals: Iterable[Interval], time_ns: int) -> str | None:
    """The client that ran then, or last before; None where nobody had. ``intervals`` are in the order in which the GPU
    ran them."""
    last = None
    for interval in intervals:
        if interval.begin_ns > time_ns:
            break
        last = interval.name
    return last


def next_begin_ns(intervals: Iterable[Interval], client: str, after_ns: int) -> int | None:
    """When a client began to run something for the first time after then; None where it did not."""
    return min((each.begin_ns for each in intervals if each.name == client and each.begin_ns >= after_ns), default=None)


def worst_share_error_percent(
    intervals: Iterable[Interval],
    expected_percent: Mapping[str, float],
    begin_ns: int,
    end_ns: int,
    *,
    window_ns: int,
    step_ns: int,
    of_executed: bool = False,
) -> float:
    """The largest distance of any client from its share, over all windows within [begin, end), in points: of the
    window, or of what was executed in it (where the shares are of all there is to have).

    A client that is not expected must get nothing. ValueError where not one window fits.
    """
    if begin_ns + window_ns > end_ns:
        raise ValueError("the run is shorter than one window")
    # One pass: GPU time up to each step's edge, then differences.
    edges = list(range(begin_ns, end_ns + 1, step_ns))
    if window_ns % step_ns:
        raise ValueError("a window must be a whole number of steps")
    up_to: dict[str, list[int]] = {client: [0] * len(edges) for client in expected_percent}
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
    for index in range(len(edges) - width):
        got_ns = {client: steps[index + width] - steps[index] for client, steps in up_to.items()}
        whole_ns = max(1, sum(got_ns.values())) if of_executed else window_ns
        for client, part_ns in got_ns.items():
            worst = max(worst, abs(100 * part_ns / whole_ns - expected_percent.get(client, 0.0)))
    return worst
