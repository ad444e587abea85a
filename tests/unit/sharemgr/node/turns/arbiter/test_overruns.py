"""Whose time it was in which one ran on whose drain was waited for no more."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.settings import STOOD_STILL_NS, Share
from sharemgr.node.turns.slices.overruns import RUNS_ON_NS
from tests.kit.arbiter.device import device

GIVEN_UP_NS = 5 * MS + 500 * US + 100 * MS
"""The end of a slice, what is queued, and how long one waits for it."""
RAN_NS = 400 * MS


def one_runs_on() -> Arbiter:
    """Its drain was given up, and it takes part again: what it queued may be waiting for its next launch."""
    arbiter = Arbiter()
    for name in ("one", "other"):
        arbiter.add(name, Share(50, 100), 0)
        arbiter.join(name, 1, 0, beside=True)
    arbiter.request("one", 1, 0)
    arbiter.request("other", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.request("one", 1, 50 * MS)
    while not arbiter.account("other", GIVEN_UP_NS).grants:
        due_ns = arbiter.deadline_ns()
        assert due_ns is not None
        arbiter.tick(due_ns)
    return arbiter


def held_ns(arbiter: Arbiter, name: str) -> int:
    """What it was charged for, all in all."""
    return arbiter.contenders[name].v * 50 // 100


def drains(arbiter: Arbiter, used_ns: int, now_ns: int = RAN_NS) -> None:
    """The other one gives its grant back, of which it used so much, and wants the next one. What it had is looked at
    each second."""
    for looked_ns in range(1000 * MS, now_ns, 1000 * MS):
        arbiter.account("other", looked_ns)
    arbiter.tick(now_ns)
    arbiter.release("other", 1, 2, used_ns, True, now_ns)


@pytest.mark.parametrize("told_first", [False, True])
@pytest.mark.parametrize("used_ns", [0, 20 * MS])
def test_what_one_ran_on_is_its_and_not_theirs_who_had_the_device_in_vain(told_first: bool, used_ns: int) -> None:
    arbiter = one_runs_on()
    ran_ns = RAN_NS - used_ns
    if told_first:
        arbiter.release("one", 1, 1, ran_ns, True, RAN_NS)
        drains(arbiter, used_ns)
    else:
        drains(arbiter, used_ns)
        assert held_ns(arbiter, "other") == pytest.approx(RAN_NS - GIVEN_UP_NS, abs=MS)
        # It says so under the next grant, which it has by now.
        arbiter.release("one", 1, 3, ran_ns, True, RAN_NS)
    assert held_ns(arbiter, "one") == pytest.approx(ran_ns, abs=MS)
    assert held_ns(arbiter, "other") == pytest.approx(used_ns, abs=MS)


def test_what_one_ran_on_is_its_also_where_turns_end_before_it_tells() -> None:
    arbiter = one_runs_on()
    drains(arbiter, 0)
    end_ns = RAN_NS + MS
    arbiter.read("other", Use(gpu_ns=MS, idle_ns=0), RAN_NS)
    arbiter.read("other", Use(idle_ns=RAN_NS), end_ns)
    arbiter.read("one", Use(gpu_ns=RAN_NS, queued=True, unheard_ns=RAN_NS), end_ns)
    arbiter.see(RAN_NS, end_ns)
    assert arbiter.beside
    assert held_ns(arbiter, "one") == pytest.approx(RAN_NS, abs=MS)
    assert held_ns(arbiter, "other") == pytest.approx(0, abs=MS)


def test_what_one_ran_on_is_heard_also_after_several_grants() -> None:
    arbiter = one_runs_on()
    drains(arbiter, 0)
    # It is called back, its drain is given up again, and the other one has the device in vain once more.
    arbiter.request("one", 1, RAN_NS)
    now_ns = RAN_NS
    while arbiter.account("other", now_ns).grants < 2:
        due_ns = arbiter.deadline_ns()
        assert due_ns is not None
        now_ns = due_ns
        arbiter.tick(now_ns)
        arbiter.request("one", 1, now_ns)
    number = arbiter.contenders["other"].number
    arbiter.tick(2 * RAN_NS)
    arbiter.release("other", 1, number, 0, True, 2 * RAN_NS)
    assert arbiter.account("one", 2 * RAN_NS).grants == 3
    arbiter.release("one", 1, arbiter.contenders["one"].number, 2 * RAN_NS, True, 2 * RAN_NS)
    assert arbiter.account("one", 2 * RAN_NS).gpu_ns == 2 * RAN_NS
    assert held_ns(arbiter, "other") == pytest.approx(0, abs=MS)


def test_no_more_is_taken_off_than_was_used_by_one_whose_drain_was_given_up() -> None:
    arbiter = one_runs_on()
    drains(arbiter, 0)
    before_ns = held_ns(arbiter, "other")
    arbiter.release("one", 1, 3, GIVEN_UP_NS + 40 * MS, True, RAN_NS)
    assert before_ns - held_ns(arbiter, "other") == 40 * MS


def test_of_two_that_lie_one_gives_the_other_no_more_than_a_drain_may_take() -> None:
    arbiter = one_runs_on()
    drains(arbiter, 0, 5000 * MS)
    before_ns = held_ns(arbiter, "other")
    arbiter.release("one", 1, 3, 5000 * MS, True, 5000 * MS)
    assert before_ns - held_ns(arbiter, "other") == RUNS_ON_NS


def test_nothing_is_taken_off_where_nobody_ran_on() -> None:
    arbiter = device(one=50, other=50)
    arbiter.request("other", 1, 0)
    arbiter.request("one", 1, MS)
    drains_ns = 50 * MS
    arbiter.tick(drains_ns)
    arbiter.release("other", 1, 1, 0, True, drains_ns)
    assert held_ns(arbiter, "other") == drains_ns


@pytest.mark.parametrize("looked", [False, True])
def test_one_that_runs_on_owes_nothing_for_a_manager_that_stood_still(looked: bool) -> None:
    """Be somebody else there to have the device or not."""
    arbiter = device(one=50, other=50)
    arbiter.request("one", 1, 0)
    arbiter.request("other", 1, 0)
    while not arbiter.account("one", arbiter.deadline_ns() or 0).overlapping:
        arbiter.tick(arbiter.deadline_ns() or 0)
    now_ns = 1000 * MS
    arbiter.release("other", 1, 2, 0, False, now_ns)
    before_ns = held_ns(arbiter, "one")
    end_ns = now_ns + STOOD_STILL_NS
    if looked:
        arbiter.account("one", end_ns - 1000 * MS)
    arbiter.account("one", end_ns)
    assert (held_ns(arbiter, "one") > before_ns) is looked
