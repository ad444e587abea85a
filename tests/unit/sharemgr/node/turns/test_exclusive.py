"""The arbiter of a device that lets one process in at a time: an EdgeTPU."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings(slice_ns=50 * MS, queue_cap_ns=0, anticipation_ns=5 * MS, exclusive=True)


def device(**requests: int) -> Arbiter:
    """An arbiter with an allocation a name, each with clients 1 and 2."""
    arbiter = Arbiter(SETTINGS)
    for name, percent in requests.items():
        arbiter.add(name, Share(percent, 100), 0)
        arbiter.join(name, 1, 0)
        arbiter.join(name, 2, 0)
    return arbiter


def grants(commands: list[Command]) -> list[str]:
    return [each.allocation_id for each in commands if isinstance(each, Grant)]


def test_who_keeps_it_is_waited_for_however_long() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, MS)
    assert Revoke("a", 1) in arbiter.tick(50 * MS)
    for seconds in range(1, 100):
        assert arbiter.deadline_ns() is None
        assert grants(arbiter.tick(seconds * S)) == []
    account = arbiter.account("a", 100 * S)
    assert (account.overlapping, account.overruns) == (False, 0)
    assert account.holding_ns == 100 * S
    assert arbiter.waiting() == ["b"]
    assert grants(arbiter.release("a", 1, 1, 100 * S, False, 100 * S)) == ["b"]
    assert arbiter.account("a", 100 * S).holding_ns == 0


def test_a_grant_is_of_one_client_the_one_that_waited_longest() -> None:
    arbiter = device(a=50)
    arbiter.request("a", 2, 0)
    assert arbiter.request("a", 1, MS) == []
    arbiter.join("a", 3, MS)
    assert arbiter.request("a", 3, MS) == []
    assert [arbiter.holds("a", client) for client in (1, 2, 3)] == [False, True, False]
    # It waits for those before it, also where it asks again.
    assert arbiter.release("a", 2, 1, 2 * MS, True, 2 * MS) == [Grant("a", 2, False)]
    assert [arbiter.holds("a", client) for client in (1, 2, 3)] == [True, False, False]
    assert arbiter.release("a", 1, 2, MS, False, 3 * MS) == [Grant("a", 3, False)]
    assert [arbiter.holds("a", client) for client in (1, 2, 3)] == [False, False, True]


def test_a_client_that_does_not_ask_owes_nothing() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, MS, False, MS)
    arbiter.request("a", 2, 20 * MS)
    arbiter.request("b", 1, 20 * MS)
    # Client 1 was granted before and is silent now.
    assert grants(arbiter.release("a", 2, 2, MS, False, 80 * MS)) == ["b"] or grants(arbiter.tick(90 * MS)) == ["b"]


def test_one_that_dies_with_it_frees_it() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, MS)
    assert grants(arbiter.gone("a", 1, 10 * MS)) == ["b"]
    assert arbiter.account("a", 10 * MS).state is State.IDLE


def test_equal_uses_of_unequal_shares_are_granted_as_requested() -> None:
    """Each opens it for 10 ms, again and again, and is back 100 us after its close."""
    arbiter = device(a=70, b=30)
    used = {"a": 0, "b": 0}
    now_ns, number, holder = 0, 0, ""
    commands = [*arbiter.request("a", 1, 0), *arbiter.request("b", 1, 0)]
    for _ in range(1000):
        for each in commands:
            if isinstance(each, Grant):
                number, holder = each.number, each.allocation_id
        mine = holder
        used[mine] += 10 * MS
        now_ns += 10 * MS
        commands = [*arbiter.tick(now_ns), *arbiter.release(mine, 1, number, 10 * MS, False, now_ns)]
        now_ns += MS // 10
        commands += arbiter.request(mine, 1, now_ns)
    assert abs(used["a"] / sum(used.values()) - 0.7) < 0.01
