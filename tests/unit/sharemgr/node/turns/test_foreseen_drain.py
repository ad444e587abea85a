"""A holder that says when it will have drained: the next is granted just before, and charged from then on."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Begin, Check, Grant, Prolong, Revoke
from sharemgr.node.turns.grants import OVERDUE_NS
from sharemgr.node.turns.settings import Settings, Share


def draining(a: int = 50, b: int = 50) -> Arbiter:
    """a was called back at 5 ms under grant 1; b waits."""
    arbiter = Arbiter()
    for name, percent in {"a": a, "b": b}.items():
        arbiter.add(name, Share(percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.request(name, 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 1)]
    return arbiter


def test_the_next_is_granted_as_soon_as_the_drain_is_foreseen_to_begin_then() -> None:
    arbiter = draining()
    assert arbiter.draining("a", 1, 1, 6 * MS, 5 * MS + 50 * US) == [Grant("b", 2, True)]
    assert arbiter.device_free_ns() == 6 * MS
    assert arbiter.slice_end_ns() == 11 * MS
    assert arbiter.account("b", 5 * MS + 60 * US).holding_ns == 0
    assert arbiter.account("a", 6 * MS).state is State.DRAINING
    assert arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS + 30 * US) == []
    assert arbiter.account("a", 6 * MS + 30 * US).state is State.WAITING
    assert arbiter.account("b", 7 * MS).longest_wait_ns == 6 * MS
    assert arbiter.account("b", 7 * MS).holding_ns == 1 * MS


@pytest.mark.parametrize("later_ns", [-500 * US, 2 * MS])
def test_a_drain_foreseen_for_another_time_moves_the_next_ones_begin(later_ns: int) -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    assert arbiter.draining("a", 1, 1, 6 * MS + later_ns, 5 * MS + 50 * US) == [Begin("b", 2, True)]
    assert arbiter.device_free_ns() == 6 * MS + later_ns


def test_a_drain_that_ends_sooner_than_foreseen_lets_the_next_begin() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    assert arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS - 30 * US) == [Begin("b", 2, True)]
    assert arbiter.device_free_ns() == 0


def test_who_is_next_after_a_long_drain_is_decided_as_of_its_end() -> None:
    """c, whose turns are short and which has just had one, is ahead of its part now, and behind it by then."""
    arbiter = Arbiter()
    for name, percent in {"c": 60, "a": 1, "b": 1}.items():
        arbiter.add(name, Share(percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.request(name, 1, 0)
    now_ns, holder, number, turns = 0, "c", 1, ""
    while turns.count("a") + turns.count("b") < 2:
        turns += holder
        now_ns = arbiter.slice_end_ns()
        revoked = [each for each in arbiter.tick(now_ns) if isinstance(each, Revoke)]
        if not revoked:
            continue
        drain_ns = 100 * US if holder == "c" else 60 * MS
        granted = arbiter.draining(holder, 1, number, now_ns + drain_ns, now_ns + 50 * US)
        if drain_ns > 50 * MS:
            granted += arbiter.release(holder, 1, number, 5 * MS, True, now_ns + drain_ns)
        else:
            arbiter.release(holder, 1, number, 5 * MS, True, now_ns + drain_ns)
        (grant,) = [each for each in granted if isinstance(each, Grant)]
        holder, number = grant.allocation_id, grant.number
    assert "ab" not in turns
    assert "ba" not in turns


def test_a_drain_foretold_far_too_late_gives_the_next_no_more_than_four_slices() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 60 * MS, 5 * MS)
    assert arbiter.slice_end_ns() == 65 * MS
    assert arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS) == [Begin("b", 2, True)]
    assert arbiter.slice_end_ns() == 26 * MS


def test_a_drain_foretold_for_ever_keeps_the_next_waiting_for_its_lease_alone() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 1 << 62, 5 * MS)
    assert arbiter.device_free_ns() == 5 * MS + Settings().queue_cap_ns + Settings().drain_grace_ns
    arbiter.draining("a", 1, 1, 1 << 61, 5 * MS)
    assert arbiter.device_free_ns() == 5 * MS + Settings().queue_cap_ns + Settings().drain_grace_ns


def test_a_latency_client_goes_before_one_that_has_not_begun() -> None:
    arbiter = draining()
    arbiter.add("c", Share(20, 100, latency=True), 0)
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    arbiter.join("c", 1, 5 * MS)
    assert arbiter.request("c", 1, 5 * MS + 100 * US) == [Revoke("b", 2)]
    assert arbiter.release("b", 1, 2, 0, True, 5 * MS + 120 * US) == [Grant("c", 3, True)]
    assert arbiter.device_free_ns() == 6 * MS


def test_until_the_drain_the_device_is_charged_to_who_drains() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 5 * MS + 100 * US, 5 * MS)
    arbiter.release("a", 1, 1, 5 * MS, True, 7 * MS)
    arbiter.tick(11 * MS)
    assert arbiter.account("a", 11 * MS).held_ns == 7 * MS
    assert arbiter.account("b", 11 * MS).held_ns == 4 * MS


def test_a_drain_that_never_comes_is_given_up_after_its_lease() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    lease_end_ns = 5 * MS + Settings().queue_cap_ns + Settings().drain_grace_ns
    assert not arbiter.account("a", lease_end_ns - 1).overlapping
    arbiter.tick(lease_end_ns)
    assert arbiter.account("a", lease_end_ns).overlapping
    assert arbiter.account("b", lease_end_ns).state is State.HOLDING


def test_one_that_foretold_its_drain_and_is_late_is_looked_at_and_waited_for_no_more_if_it_is_stopped() -> None:
    """Until then b is charged nothing, and so is next for ever."""
    arbiter = draining(50, 25)
    arbiter.add("c", Share(25, 100), 0)
    arbiter.join("c", 1, 0)
    arbiter.request("c", 1, 5 * MS)
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    assert arbiter.tick(11 * MS) == [Prolong("b", 2)]
    assert arbiter.tick(16 * MS) == [Check("a"), Prolong("b", 2)]
    assert arbiter.stopped("a", {7}, 16 * MS) == []
    assert not arbiter.account("a", 16 * MS).overlapping
    assert arbiter.stopped("a", {1}, 16 * MS) == []
    assert arbiter.account("a", 16 * MS).overlapping
    assert arbiter.tick(21 * MS) == [Revoke("b", 2)]
    assert arbiter.release("b", 1, 2, 15 * MS, True, 21 * MS) == [Grant("c", 3, True)]


def test_one_that_foretold_its_drain_and_is_late_is_looked_at_now_and_then() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    looks_ns = []
    while not arbiter.account("a", 0).overlapping:
        due_ns = arbiter.deadline_ns()
        assert due_ns is not None
        looks_ns += [due_ns] * (Check("a") in arbiter.tick(due_ns))
    lease_end_ns = 5 * MS + Settings().queue_cap_ns + Settings().drain_grace_ns
    assert looks_ns == list(range(6 * MS + OVERDUE_NS, lease_end_ns, 2 * OVERDUE_NS))


def test_with_several_clients_the_last_one_counts() -> None:
    arbiter = Arbiter()
    for name in ("a", "b"):
        arbiter.add(name, Share(50, 100), 0)
    for client in (1, 2):
        arbiter.join("a", client, 0)
        arbiter.request("a", client, 0)
    arbiter.join("b", 1, 0)
    arbiter.request("b", 1, 0)
    revoked = arbiter.tick(5 * MS)
    assert [type(command) for command in revoked] == [Revoke]
    number = revoked[0].number
    assert arbiter.draining("a", 1, number, 6 * MS, 5 * MS) == []
    assert [type(command) for command in arbiter.draining("a", 2, number, 7 * MS, 5 * MS)] == [Grant]
    assert arbiter.device_free_ns() == 7 * MS


@pytest.mark.parametrize("number", [0, 2, -1, 1 << 40])
def test_a_stale_foretelling_changes_nothing(number: int) -> None:
    arbiter = draining()
    before = arbiter.deadline_ns()
    assert arbiter.draining("a", 1, number, 6 * MS, 5 * MS) == []
    assert arbiter.draining("nobody", 1, 1, 6 * MS, 5 * MS) == []
    assert arbiter.draining("a", 7, 1, 6 * MS, 5 * MS) == []
    assert arbiter.deadline_ns() == before


def test_a_holder_that_dies_while_the_next_is_granted_leaves_the_device_to_it() -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    assert arbiter.gone("a", 1, 6 * MS + 1) == []
    assert arbiter.account("a", 7 * MS).state is State.IDLE
    assert arbiter.account("b", 7 * MS).held_ns == MS - 1


@pytest.mark.parametrize("late_ns", [0, MS, 3 * MS])
def test_the_next_ones_gpu_time_counts_from_the_foreseen_end_however_late_that_is_heard_of(late_ns: int) -> None:
    arbiter = draining()
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    arbiter.release("a", 1, 1, 6 * MS, True, 6 * MS + late_ns)
    arbiter.release("b", 1, 2, 5 * MS, False, 11 * MS)
    assert arbiter.account("b", 11 * MS).gpu_ns == 5 * MS
    assert arbiter.account("b", 11 * MS).held_ns == 5 * MS - late_ns
