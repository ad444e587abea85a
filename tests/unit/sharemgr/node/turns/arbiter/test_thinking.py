"""The device is waited with for a holder that thinks: how long, and for whom not."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Grant
from sharemgr.node.turns.settings import Settings
from tests.kit.arbiter.device import device


def test_the_device_waits_for_one_that_thinks_while_its_slice_lasts() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == []
    assert arbiter.deadline_ns() == MS + 300 * US
    assert arbiter.request("a", 1, MS + 100 * US) == [Grant("a", 2, True)]
    # The slice goes on where it was, and the thinking was charged.
    assert arbiter.deadline_ns() == 5 * MS
    assert arbiter.account("a", 2 * MS).held_ns == 2 * MS


def test_one_that_thinks_too_long_loses_its_turn() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.release("a", 1, 1, MS, False, MS)
    assert arbiter.tick(MS + 300 * US) == [Grant("b", 2, True)]
    assert arbiter.account("a", MS + 300 * US).state is State.IDLE


def test_one_that_always_thinks_long_is_not_waited_for() -> None:
    arbiter = device(a=50, b=50)
    now_ns = 0
    for number in range(1, 30):
        arbiter.request("a", 1, now_ns)
        arbiter.release("a", 1, number, MS, False, now_ns + MS)
        now_ns += 3 * MS
    arbiter.request("a", 1, now_ns)
    arbiter.request("b", 1, now_ns)
    assert arbiter.release("a", 1, 30, MS, False, now_ns + MS) == [Grant("b", 31, True)]


def test_nobody_is_waited_for_where_anticipation_is_off() -> None:
    arbiter = device(Settings(anticipation_ns=0), a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == [Grant("b", 2, True)]
