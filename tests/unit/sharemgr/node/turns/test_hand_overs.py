"""Time in which a device changes hands is nobody's; what was used beside one that still drained is who used it's."""

from collections.abc import Mapping

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Grant
from sharemgr.node.turns.settings import Settings, Share

SWITCH_NS = 250 * US
MOST_NS = Settings().slice_ns // 10


def in_turns(told_ns: Mapping[str, int]) -> Arbiter:
    """a has the device and b waits, 50 each; each says how long hand-overs take, or nothing."""
    arbiter = Arbiter()
    for name in ("a", "b"):
        arbiter.add(name, Share(50, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.hand_over(name, told_ns.get(name, 0))
    for name in ("a", "b"):
        arbiter.request(name, 1, 0)
    return arbiter


def lag_after_a_turn(arbiter: Arbiter, unused_ns: int) -> int:
    """a held for 6 ms, and used all but so much of them."""
    arbiter.tick(5 * MS)
    arbiter.release("a", 1, 1, 6 * MS - unused_ns, True, 6 * MS)
    return arbiter.account("a", 6 * MS).lag_ns


@pytest.mark.parametrize(
    ("told_ns", "unused_ns", "forgiven_ns"),
    [
        ({"a": SWITCH_NS, "b": SWITCH_NS}, SWITCH_NS, SWITCH_NS),
        ({"a": SWITCH_NS, "b": SWITCH_NS}, 100 * US, 100 * US),  # it did not take so long
        ({"a": SWITCH_NS, "b": SWITCH_NS}, 2 * MS, SWITCH_NS),  # the rest is its own leisure
        ({"a": 400 * US, "b": 40 * US}, MS, 40 * US),
        ({"a": 40 * US, "b": 400 * US}, MS, 40 * US),
        ({"a": MS, "b": MS}, 2 * MS, MOST_NS),
        ({"a": MS}, 2 * MS, 0),  # one alone says so
        ({}, MS, 0),
        ({"a": SWITCH_NS, "b": SWITCH_NS}, 6 * MS, 0),  # it used nothing at all
    ],
)
def test_nobody_is_charged_for_a_hand_over(told_ns: dict[str, int], unused_ns: int, forgiven_ns: int) -> None:
    assert lag_after_a_turn(in_turns(told_ns), unused_ns) == -(6 * MS - forgiven_ns) // 2


def test_who_had_the_device_before_is_charged_for_all_of_it() -> None:
    arbiter = in_turns({"a": SWITCH_NS, "b": SWITCH_NS})
    arbiter.release("a", 1, 1, MS, False, MS)
    [granted] = arbiter.request("a", 1, MS + 100 * US)
    arbiter.release("a", 1, granted.number, MS, True, 2 * MS + SWITCH_NS)
    assert arbiter.account("a", 2 * MS + SWITCH_NS).lag_ns == -(2 * MS + SWITCH_NS) // 2


def test_one_that_was_removed_says_nothing_any_more() -> None:
    arbiter = in_turns({"a": SWITCH_NS, "b": SWITCH_NS})
    arbiter.add("c", Share(50, 100), 0)
    arbiter.remove("b", 0)
    arbiter.join("c", 1, 0)
    arbiter.request("c", 1, 0)
    assert lag_after_a_turn(arbiter, SWITCH_NS) == -3 * MS


@pytest.mark.parametrize(
    ("late_ns", "used_ns", "moved_ns"),
    [
        (2 * MS, 6 * MS, MS),  # it used one of the two before the other had drained
        (2 * MS, 9 * MS, 2 * MS),  # what it says beyond that is not believed
        (2 * MS, 4 * MS, 0),
        (0, 9 * MS, 0),
    ],
)
def test_what_was_used_beside_one_that_still_drained_is_moved(late_ns: int, used_ns: int, moved_ns: int) -> None:
    lags_ns = []
    for told_ns in (used_ns, 4 * MS):
        arbiter = in_turns({})
        arbiter.tick(5 * MS)
        arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
        arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS + late_ns)
        arbiter.tick(11 * MS)
        arbiter.release("b", 1, 2, told_ns, True, 11 * MS + late_ns)
        lags_ns.append(arbiter.account("a", 11 * MS + late_ns).lag_ns)
    assert lags_ns[0] - lags_ns[1] == moved_ns


@pytest.mark.parametrize(
    ("told_ns", "slice_ns"),
    [(0, 5 * MS), (40 * US, 5 * MS), (125 * US, 5 * MS), (150 * US, 6 * MS), (SWITCH_NS, 10 * MS), (MS, 10 * MS)],
)
def test_a_slice_lasts_for_forty_hand_overs_up_to_two_slices(told_ns: int, slice_ns: int) -> None:
    assert in_turns({"a": told_ns, "b": told_ns}).turn_end_ns() == slice_ns


@pytest.mark.parametrize("drains_ns", [MS, 3 * MS, 8 * MS])
def test_what_a_drain_takes_comes_off_a_longer_slice(drains_ns: int) -> None:
    arbiter = in_turns({"a": SWITCH_NS, "b": SWITCH_NS})
    now_ns = 0
    for number in range(1, 4):
        deadline_ns = arbiter.deadline_ns()
        assert deadline_ns is not None
        [revoked] = arbiter.tick(max(now_ns, deadline_ns))
        began_ns, now_ns = now_ns, max(now_ns, deadline_ns) + drains_ns
        arbiter.release(revoked.allocation_id, 1, number, now_ns - began_ns, True, now_ns)
    assert arbiter.turn_end_ns() - now_ns == max(5 * MS, 10 * MS - drains_ns)


@pytest.mark.parametrize(
    ("think_ns", "told_ns", "waited_ns"),
    [(250 * US, 0, 300 * US), (400 * US, 40 * US, 0), (400 * US, SWITCH_NS, 500 * US), (600 * US, SWITCH_NS, 0)],
)
def test_the_device_waits_for_one_that_thinks_for_as_long_as_going_to_and_fro_takes(
    think_ns: int, told_ns: int, waited_ns: int
) -> None:
    arbiter = in_turns({"a": told_ns, "b": told_ns})
    arbiter.gone("b", 1, 0)
    now_ns, number = 0, 1
    # So often that it is known how long it thinks, and until its slice lasts for long enough.
    while number < 40 or arbiter.turn_end_ns() < now_ns + 2 * MS:
        arbiter.release("a", 1, number, MS, False, now_ns + MS)
        now_ns, number = now_ns + MS + think_ns, number + 1
        arbiter.tick(now_ns)
        assert arbiter.request("a", 1, now_ns) == [Grant("a", number, True)]
    arbiter.join("b", 2, now_ns)
    arbiter.request("b", 2, now_ns)
    commands = arbiter.release("a", 1, number, MS, False, now_ns + MS)
    if waited_ns:
        assert commands == []
        assert arbiter.deadline_ns() == now_ns + MS + waited_ns
    else:
        assert commands == [Grant("b", number + 1, True)]
