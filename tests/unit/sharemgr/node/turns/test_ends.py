"""Slices of several devices that end together."""

from itertools import pairwise

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Prolong, Revoke
from sharemgr.node.turns.settings import Share
from sharemgr.node.turns.slices.ends import SLACK_NS, Ends


@pytest.mark.parametrize(("at_ns", "ends_ns"), [(9 * MS, 10 * MS), (11 * MS, 10 * MS), (12 * MS, 12 * MS)])
def test_a_slice_ends_with_one_that_ends_within_the_slack(at_ns: int, ends_ns: int) -> None:
    ends = Ends()
    assert ends.place("first", 10 * MS) == 10 * MS
    assert ends.place("second", at_ns) == ends_ns


def test_the_nearest_counts_and_not_the_devices_own() -> None:
    ends = Ends()
    ends.place("first", 10 * MS)
    ends.place("second", 12 * MS)
    assert ends.place("third", 11 * MS + 1) == 12 * MS
    assert ends.place("first", 10 * MS + 1) == 10 * MS + 1


def test_alone_every_slice_has_its_length() -> None:
    ends = Ends()
    assert [ends.place("one", at_ns * MS) for at_ns in range(5, 50, 5)] == [at_ns * MS for at_ns in range(5, 50, 5)]


def test_saturated_devices_come_to_end_their_slices_together() -> None:
    """Four devices whose slices begin at odd times; on each the holder drains for as long as a kernel takes."""
    ends = Ends()
    arbiters = []
    for number in range(4):
        arbiter = Arbiter(ends=ends)
        for name in ("a", "b"):
            arbiter.add(name, Share(50, 100), 0)
            arbiter.join(name, 1, 0)
            arbiter.request(name, 1, number * MS + number)
        arbiters.append(arbiter)
    looks: dict[int, int] = {}
    lengths: list[int] = []
    began_ns = dict.fromkeys(range(4), 0)
    for _ in range(400):
        number = min(range(4), key=lambda each: arbiters[each].deadline_ns() or 0)
        arbiter = arbiters[number]
        now_ns = arbiter.deadline_ns() or 0
        for command in arbiter.tick(now_ns):
            if isinstance(command, Revoke):
                looks[now_ns] = looks.get(now_ns, 0) + 1
                lengths.append(now_ns - began_ns[number])
                drained_ns = now_ns + (200_000 * (number + 1))
                arbiter.draining(command.allocation_id, 1, command.number, drained_ns, now_ns)
                arbiter.release(command.allocation_id, 1, command.number, 5 * MS, True, drained_ns)
                began_ns[number] = drained_ns
            elif isinstance(command, Prolong):
                began_ns[number] = now_ns
    times = sorted(looks)
    assert all(later - earlier > SLACK_NS for earlier, later in pairwise(times[10:]))
    assert all(5 * MS - SLACK_NS <= length <= 5 * MS + SLACK_NS for length in lengths[8:])
