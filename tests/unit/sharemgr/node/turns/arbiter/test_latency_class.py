"""What an urgent client gets before others, and what it does not."""

from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.commands import Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.device import device


def test_an_urgent_one_takes_the_device_from_a_batch_holder_at_once() -> None:
    arbiter = device(a=Share(30, 100, latency=True), b=70)
    arbiter.request("b", 1, 0)
    assert arbiter.request("a", 1, MS) == [Revoke("b", 1)]
    assert arbiter.release("b", 1, 1, MS, True, 2 * MS) == [Grant("a", 2, True)]


def test_an_urgent_one_is_granted_before_one_that_is_waited_for() -> None:
    arbiter = device(a=Share(30, 100, latency=True), b=40, c=30)
    arbiter.request("b", 1, 0)
    arbiter.request("c", 1, 0)
    assert arbiter.release("b", 1, 1, MS, False, MS) == []
    assert arbiter.request("a", 1, MS + 10) == [Grant("a", 2, True)]


def test_one_of_the_latency_class_without_budget_waits_like_any_other_until_its_next_period() -> None:
    arbiter = device(a=Share(30, 100, latency=True), b=70)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.tick(5 * MS) == [Prolong("a", 1)]
    assert arbiter.tick(10 * MS) == [Prolong("a", 1)]
    assert arbiter.tick(15 * MS) == [Revoke("a", 1)]
    assert arbiter.release("a", 1, 1, 15 * MS, True, 15 * MS) == [Grant("b", 2, True)]
    for slices in range(4, 10):
        assert arbiter.tick(5 * slices * MS) == [Prolong("b", 2)]
    assert arbiter.tick(50 * MS) == [Revoke("b", 2)]
