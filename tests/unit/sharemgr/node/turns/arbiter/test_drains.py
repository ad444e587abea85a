"""How long a holder that was called back is waited for, and what becomes of one that does not drain."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Check, Command, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Settings
from tests.kit.arbiter.device import device

GRACE_NS = Settings().drain_grace_ns


def test_a_holder_that_does_not_drain_is_not_waited_for() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    expires_ns = 5 * MS + 500 * US + GRACE_NS
    # Until then it is looked at now and then, and is not stopped.
    while (due_ns := arbiter.deadline_ns()) != expires_ns:
        assert due_ns is not None
        assert arbiter.tick(due_ns) == [Check("a")]
        assert arbiter.stopped("a", [], due_ns) == []
    assert arbiter.tick(expires_ns) == [Grant("b", 2, True)]
    account = arbiter.account("a", expires_ns)
    assert account.overlapping
    assert account.state is State.DRAINING
    # It is charged all the while.
    assert arbiter.tick(900 * MS) == []
    assert arbiter.account("a", 900 * MS).held_ns == 900 * MS
    assert arbiter.account("b", 900 * MS).held_ns == 900 * MS - expires_ns
    assert arbiter.release("a", 1, 1, 900 * MS, True, 900 * MS) == [Revoke("b", 2)]
    account = arbiter.account("a", 900 * MS)
    assert not account.overlapping
    assert account.state is State.WAITING
    assert account.lag_ns == -expires_ns // 2


@pytest.mark.parametrize("asks_early", [True, False])
def test_one_that_does_not_drain_and_has_a_launch_waiting_takes_part_again(asks_early: bool) -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    if asks_early:
        assert arbiter.request("a", 1, GRACE_NS) == []
    granted_ns, commands = expiry(arbiter)
    assert commands == [Grant("b", 2, True)]
    if not asks_early:
        assert arbiter.account("a", granted_ns).overlapping
        assert arbiter.request("a", 1, granted_ns) == []
    # What kept the device from b is paid back first.
    account = arbiter.account("a", granted_ns)
    assert account.state is State.WAITING
    assert account.lag_ns == -granted_ns // 2
    commands = []
    while not commands or commands == [Prolong("b", 2)]:
        now_ns = arbiter.deadline_ns()
        assert now_ns is not None
        commands = arbiter.tick(now_ns)
    assert commands == [Revoke("b", 2)]
    assert now_ns > 2 * granted_ns - 5 * MS
    assert arbiter.release("b", 1, 2, 0, True, now_ns) == [Grant("a", 3, True)]
    # That the old queue has drained is no news of the new grant.
    assert arbiter.release("a", 1, 1, 0, False, now_ns + MS) == []
    assert arbiter.account("a", now_ns + MS).state is State.HOLDING


def test_one_that_is_stopped_while_it_drains_is_passed_over_at_once() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 2)]
    due_ns = arbiter.deadline_ns()
    assert due_ns is not None
    assert 5 * MS < due_ns < 20 * MS
    assert arbiter.tick(due_ns) == [Check("a")]
    assert arbiter.stopped("a", [2], due_ns) == []  # the other one may still drain
    assert arbiter.stopped("a", [1, 2], due_ns) == [Grant("b", 3, True)]
    account = arbiter.account("a", due_ns)
    assert account.overlapping
    assert account.overruns == 1


def test_one_that_is_stopped_and_owes_nothing_is_left_alone() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    assert arbiter.stopped("b", [1], 0) == []
    assert arbiter.stopped("a", [1], 0) == []  # holds; nobody called it back
    assert arbiter.stopped("nobody", [1], 0) == []
    assert arbiter.account("a", MS).state is State.HOLDING
    assert not arbiter.account("a", MS).overlapping


def test_a_drain_that_is_foretold_for_never_is_waited_for_no_longer() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.draining("a", 1, 1, 1 << 62, 5 * MS)
    assert expiry(arbiter)[0] == 5 * MS + 500 * US + GRACE_NS


def test_a_drain_is_waited_for_as_long_as_it_usually_takes_and_the_grace_time() -> None:
    arbiter = device(a=50, b=50)
    now_ns = 0
    commands = arbiter.request("a", 1, now_ns)
    arbiter.request("b", 1, now_ns)
    for turn in range(400):
        [command] = commands
        assert isinstance(command, Grant)
        name, number = command.allocation_id, command.number
        revoked: list[Command] = []
        while not revoked:
            deadline_ns = arbiter.deadline_ns()
            assert deadline_ns is not None
            assert deadline_ns > now_ns
            now_ns = deadline_ns
            revoked = arbiter.tick(now_ns)
        if name == "a":
            drained_ns = now_ns + 40 * MS
            while (due_ns := arbiter.deadline_ns()) is not None and due_ns < drained_ns:
                assert arbiter.tick(due_ns) == [Check("a")]
                now_ns = due_ns
            if turn > 300:
                break
            now_ns = drained_ns
        commands = arbiter.release(name, 1, number, 5 * MS, True, now_ns)
    assert expiry(arbiter)[0] == pytest.approx(drained_ns + GRACE_NS, abs=6 * MS)


def expiry(arbiter: Arbiter) -> tuple[int, list[Command]]:
    """Lets time pass until the drain of "a" is waited for no more, as nothing happens before: when that is, and what
    comes of it."""
    while True:
        due_ns = arbiter.deadline_ns()
        assert due_ns is not None
        commands = arbiter.tick(due_ns)
        if commands != [Check("a")]:
            return due_ns, commands
