"""When a slice ends, and when it goes on."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.device import device


def test_a_rival_ends_the_slice_when_it_is_used_up() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    assert arbiter.request("b", 1, 2 * MS) == [Contend("a", 1, True)]
    assert arbiter.deadline_ns() == 5 * MS
    assert arbiter.tick(4 * MS) == []
    assert arbiter.tick(5 * MS) == [Revoke("a", 1)]
    assert arbiter.account("a", 5 * MS).state is State.DRAINING
    assert arbiter.release("a", 1, 1, 5 * MS, True, 6 * MS) == [Grant("b", 2, True)]
    assert arbiter.account("b", 7 * MS).longest_wait_ns == 4 * MS


def test_a_rival_ends_a_slice_that_was_used_up_long_ago_at_once() -> None:
    arbiter = device(a=99, b=1)
    arbiter.request("a", 1, 0)
    assert arbiter.request("b", 1, 9 * S) == [Contend("a", 1, True), Revoke("a", 1)]


def test_a_holder_that_is_still_the_best_goes_on_without_draining() -> None:
    arbiter = device(a=90, b=10)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    # Both are where they should be; the next deadline of a is earlier than that of b, until it is ahead.
    assert arbiter.tick(5 * MS) == [Revoke("a", 1)]
    assert arbiter.release("a", 1, 1, 5 * MS, True, 5 * MS) == [Grant("b", 2, True)]
    assert arbiter.tick(10 * MS) == [Revoke("b", 2)]
    assert arbiter.release("b", 1, 2, 5 * MS, True, 10 * MS) == [Grant("a", 3, True)]
    for slices in range(3, 10):
        assert arbiter.tick(5 * slices * MS) == [Prolong("a", 3)]
        assert arbiter.slice_end_ns() == 5 * (slices + 1) * MS
        assert arbiter.deadline_ns() == 5 * (slices + 1) * MS


def test_a_slice_is_sure_to_last_only_where_no_latency_client_can_cut_it_short() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    assert arbiter.slice_end_ns() == 5 * MS
    arbiter.add("l", Share(30, 100, latency=True), 0)
    assert arbiter.slice_end_ns() == 5 * MS
    arbiter.join("l", 1, MS)
    assert arbiter.slice_end_ns() == 0
