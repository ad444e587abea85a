"""Limits, by the GPU time that clients report: clamped to what was held, changed by an update at once."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.commands import Grant, Prolong, Revoke
from sharemgr.node.turns.settings import STOOD_STILL_NS, Settings, Share
from tests.kit.arbiter.device import device

SETTINGS = Settings()


def test_a_limit_holds_for_one_that_is_alone() -> None:
    arbiter = device(a=Share(20, 25))
    [command] = arbiter.request("a", 1, 0)
    now_ns = granted_ns = gpu_ns = 0
    assert command == Grant("a", 1, True)  # it must not queue far ahead of its limit
    while now_ns < 10 * S:
        deadline_ns = arbiter.deadline_ns()
        assert deadline_ns is not None
        now_ns = deadline_ns
        for event in arbiter.tick(now_ns):
            if isinstance(event, Revoke):
                gpu_ns += now_ns - granted_ns
                for again in arbiter.release("a", 1, event.number, now_ns - granted_ns, True, now_ns):
                    assert isinstance(again, Grant)
                    granted_ns = now_ns
            else:
                assert isinstance(event, Grant)
                granted_ns = now_ns
    assert 0.25 * 10 * S - 5 * MS <= gpu_ns <= 0.25 * (10 * S + 50 * MS) + 5 * MS
    assert arbiter.account("a", now_ns).gpu_ns == pytest.approx(gpu_ns, abs=5 * MS)


def test_gpu_time_is_clamped_to_what_was_held() -> None:
    arbiter = device(a=50)
    arbiter.request("a", 1, 0)
    arbiter.usage("a", 1, 1, 60 * MS, 100 * MS)
    arbiter.usage("a", 1, 1, 60 * S, 200 * MS)
    arbiter.release("a", 1, 1, 60 * S, False, 300 * MS)
    assert arbiter.account("a", 300 * MS).gpu_ns == 300 * MS


def test_claiming_more_than_was_held_throttles_nobody_for_longer_than_holding_did() -> None:
    arbiter = device(a=Share(10, 10))
    arbiter.request("a", 1, 0)
    arbiter.usage("a", 1, 1, 3600 * S, 5 * MS)
    arbiter.release("a", 1, 1, 3600 * S, True, 6 * MS)
    assert arbiter.account("a", 6 * MS).throttled
    assert arbiter.deadline_ns() == 60 * MS - SETTINGS.limit_burst_ns


@pytest.mark.parametrize(("looked", "throttled"), [(False, False), (True, True)])
def test_a_limit_counts_nothing_that_was_used_while_the_manager_stood_still(looked: bool, throttled: bool) -> None:
    """It could call nobody back. What one keeps from it, as it looks each second, counts."""
    arbiter = device(a=Share(50, 50))
    arbiter.request("a", 1, 0)
    end_ns = 10 * STOOD_STILL_NS
    for now_ns in range(S, end_ns, S) if looked else ():
        arbiter.account("a", now_ns)
    arbiter.release("a", 1, 1, end_ns, True, end_ns)
    assert arbiter.account("a", end_ns).throttled is throttled


def test_a_lie_about_gpu_time_does_not_change_the_share() -> None:
    def held(reported_ns: int) -> list[Account]:
        arbiter = device(a=50, b=50)
        now_ns = 0
        commands = [*arbiter.request("a", 1, 0), *arbiter.request("b", 1, 0)]
        while now_ns < S:
            deadline_ns = arbiter.deadline_ns()
            assert deadline_ns is not None
            now_ns = deadline_ns
            commands = arbiter.tick(now_ns)
            for command in commands:
                if isinstance(command, Prolong):
                    continue
                assert isinstance(command, Revoke)
                name = command.allocation_id
                gpu_ns = reported_ns if name == "a" else 5 * MS
                arbiter.release(name, 1, command.number, gpu_ns, True, now_ns)
        return [arbiter.account(name, now_ns) for name in ("a", "b")]

    assert [each.held_ns for each in held(0)] == [each.held_ns for each in held(5 * MS)]
    assert held(0)[0].gpu_ns == 0


def test_an_update_changes_limit_and_class_at_once() -> None:
    arbiter = device(a=Share(20, 20), b=50)
    arbiter.request("a", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.release("a", 1, 1, 5 * MS, True, 105 * MS)
    now_ns = 105 * MS
    for _ in range(20):
        now_ns += 5 * MS
        for command in arbiter.tick(now_ns):
            arbiter.release("a", 1, command.number, 5 * MS, True, now_ns)
        if arbiter.account("a", now_ns).throttled:
            break
    assert arbiter.account("a", now_ns).throttled
    [command] = arbiter.update("a", Share(20, 100), now_ns)
    assert command == Grant("a", command.number, False)
    arbiter.request("b", 1, now_ns)
    assert arbiter.update("b", Share(50, 100, latency=True), now_ns) == []
    assert arbiter.account("b", now_ns).state is State.WAITING
    assert arbiter.update("a", Share(20, 30), now_ns) == []
