"""Clients that are gone: what they held is free, and what they did not report counts."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Grant
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.device import device


def test_a_holder_that_is_gone_frees_the_slice_at_once() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.gone("a", 1, MS) == [Grant("b", 2, True)]
    assert arbiter.account("a", MS).state is State.IDLE


def test_a_gone_one_that_overlapped_is_no_longer_charged() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.tick(S)
    arbiter.gone("a", 1, 2 * S)
    account = arbiter.account("a", 3 * S)
    assert not account.overlapping
    assert account.held_ns == 2 * S


def test_one_that_waits_and_is_gone_is_not_granted() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.gone("b", 1, MS) == []
    assert arbiter.release("a", 1, 1, MS, True, 2 * MS) == [Grant("a", 2, True)]


def test_what_a_gone_one_did_not_report_counts_against_its_limit() -> None:
    arbiter = device(a=Share(10, 10))
    now_ns = 0
    for client_id in range(2, 4):
        arbiter.join("a", client_id, now_ns)
        assert arbiter.request("a", client_id, now_ns) != []
        now_ns += 4 * MS
        arbiter.gone("a", client_id, now_ns)
    assert arbiter.account("a", now_ns).gpu_ns == 8 * MS
    arbiter.join("a", 9, now_ns)
    assert arbiter.request("a", 9, now_ns) == []
    assert arbiter.account("a", now_ns).throttled


def test_a_client_that_dies_leaves_the_slice_to_the_allocations_others() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.gone("a", 1, MS) == []
    assert arbiter.account("a", MS).state is State.HOLDING
    assert arbiter.gone("a", 2, 2 * MS) == [Grant("b", 3, True)]
