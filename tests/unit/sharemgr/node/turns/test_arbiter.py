"""The arbiter's answers to what happens on one device, event by event."""

from collections.abc import Callable

import pytest

from edgeshare.contract.errors import AlreadyExists, NotFound
from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import MAX_NUMBER, Check, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()


def device(settings: Settings | None = None, /, **shares: int | Share) -> Arbiter:
    """An arbiter with an allocation a name, each with client 1. A number is a request that may use what is idle."""
    arbiter = Arbiter(settings)
    for name, share in shares.items():
        arbiter.add(name, share if isinstance(share, Share) else Share(share, 100), 0)
        arbiter.join(name, 1, 0)
    return arbiter


def test_the_first_that_asks_gets_the_device_uncontended_and_without_an_end() -> None:
    arbiter = device(a=50, b=50)
    assert arbiter.request("a", 1, 10) == [Grant("a", 1, False)]
    assert arbiter.deadline_ns() is None
    assert arbiter.account("a", 20).state is State.HOLDING


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


def test_an_idle_device_is_given_to_whoever_asks_next() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == []
    assert arbiter.account("a", MS).state is State.IDLE
    assert arbiter.deadline_ns() == MS + 300 * US  # until then it may be thinking
    assert arbiter.tick(MS + 300 * US) == []
    assert arbiter.request("b", 1, 2 * MS) == [Grant("b", 2, True)]


@pytest.mark.parametrize("number", [0, 1, 3, 4, -1, MAX_NUMBER, MAX_NUMBER + 3])
def test_a_release_with_another_number_than_the_grants_is_ignored(number: int) -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    arbiter.release("a", 1, 1, MS, True, 5 * MS)
    assert arbiter.account("b", 5 * MS).state is State.HOLDING
    assert arbiter.release("b", 1, number, MS, True, 6 * MS) == []
    assert arbiter.usage("b", 1, number, MS, 6 * MS) == []
    assert arbiter.account("b", 6 * MS).state is State.HOLDING
    assert arbiter.account("b", 6 * MS).gpu_ns == 0


def test_a_release_counts_once() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, MS, False, 2 * MS)
    arbiter.request("a", 1, 3 * MS)
    assert arbiter.release("a", 1, 1, MS, False, 4 * MS) == []
    assert arbiter.account("a", 4 * MS).state is State.HOLDING


def test_what_comes_from_nobody_known_is_ignored() -> None:
    arbiter = device(a=50)
    for events in (arbiter.request, arbiter.gone):
        assert events("a", 2, 0) == []
        assert events("z", 1, 0) == []
    assert arbiter.release("a", 2, 1, 0, False, 0) == []
    assert arbiter.usage("z", 1, 1, 0, 0) == []
    assert arbiter.remove("z", 0) == []


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda arbiter: arbiter.add("a", Share(1, 100), 0), AlreadyExists),
        (lambda arbiter: arbiter.join("a", 1, 0), AlreadyExists),
        (lambda arbiter: arbiter.join("z", 1, 0), NotFound),
        (lambda arbiter: arbiter.update("z", Share(1, 100), 0), NotFound),
        (lambda arbiter: arbiter.account("z", 0), NotFound),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[Arbiter], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        call(device(a=50))


def test_a_holder_that_does_not_drain_is_not_waited_for() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    expires_ns = 5 * MS + 500 * US + 100 * MS
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
    assert account.lag_ns < -40 * MS


@pytest.mark.parametrize("asks_early", [True, False])
def test_one_that_does_not_drain_and_has_a_launch_waiting_takes_part_again(asks_early: bool) -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("a", 1, 0)
    arbiter.request("b", 1, 0)
    arbiter.tick(5 * MS)
    if asks_early:
        assert arbiter.request("a", 1, 100 * MS) == []
    granted_ns, commands = expiry(arbiter)
    assert commands == [Grant("b", 2, True)]
    if not asks_early:
        assert arbiter.account("a", granted_ns).overlapping
        assert arbiter.request("a", 1, granted_ns) == []
    # What kept the device from b is paid back first.
    account = arbiter.account("a", granted_ns)
    assert account.state is State.WAITING
    assert account.lag_ns < -40 * MS
    commands = []
    while not commands or commands == [Prolong("b", 2)]:
        now_ns = arbiter.deadline_ns()
        assert now_ns is not None
        commands = arbiter.tick(now_ns)
    assert commands == [Revoke("b", 2)]
    assert now_ns > 200 * MS
    assert arbiter.release("b", 1, 2, 0, True, now_ns) == [Grant("a", 3, True)]
    # That the old queue has drained is no news of the new grant.
    assert arbiter.release("a", 1, 1, 0, False, now_ns + MS) == []
    assert arbiter.account("a", now_ns + MS).state is State.HOLDING


def expiry(arbiter: Arbiter) -> tuple[int, list[Command]]:
    """Lets time pass until the drain of "a" is waited for no more, as nothing happens before: when that is, and what
    comes of it."""
    while True:
        due_ns = arbiter.deadline_ns()
        assert due_ns is not None
        commands = arbiter.tick(due_ns)
        if commands != [Check("a")]:
            return due_ns, commands


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
    assert expiry(arbiter)[0] == 5 * MS + 500 * US + 100 * MS


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
    assert expiry(arbiter)[0] == pytest.approx(drained_ns + 100 * MS, abs=6 * MS)


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


def test_a_grant_opens_all_clients_that_ever_asked_and_has_drained_when_all_have() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.join("a", 3, 0)  # never asks
    arbiter.request("a", 1, 0)
    assert arbiter.request("a", 2, 0) == [Grant("a", 2, False)]
    arbiter.request("b", 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 2)]
    assert arbiter.release("a", 1, 1, MS, True, 6 * MS) == []
    assert arbiter.release("a", 2, 2, MS, True, 7 * MS) == [Grant("b", 3, True)]
    assert arbiter.account("a", 7 * MS).gpu_ns == 2 * MS


def test_a_client_of_several_may_release_and_come_in_again_while_the_others_hold() -> None:
    arbiter = device(a=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    assert arbiter.release("a", 1, 1, MS, False, MS) == []
    assert arbiter.request("a", 1, 2 * MS) == [Grant("a", 3, False)]
    assert arbiter.release("a", 1, 1, MS, False, 3 * MS) == []  # the number that it has released already
    assert arbiter.release("a", 2, 2, MS, False, 3 * MS) == []
    assert arbiter.account("a", 3 * MS).state is State.HOLDING
    arbiter.release("a", 1, 3, MS, False, 3 * MS)
    assert arbiter.account("a", 3 * MS).state is State.IDLE


def test_gates_that_were_opened_for_another_clients_work_do_not_keep_the_device() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    arbiter.release("a", 1, 1, MS, False, MS)
    arbiter.release("a", 2, 2, MS, False, MS)
    assert arbiter.request("a", 1, 2 * MS) == [Grant("a", 3, False)]
    arbiter.request("b", 1, 2 * MS)
    # The second client's gate is open too, but it has not asked.
    assert arbiter.release("a", 1, 3, MS, False, 3 * MS) == [Revoke("a", 3)]
    assert arbiter.release("a", 2, 3, 0, False, 3 * MS) == []
    assert arbiter.account("a", 3 * MS).state is State.IDLE


def test_a_client_that_dies_leaves_the_slice_to_the_allocations_others() -> None:
    arbiter = device(a=50, b=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.request("a", 2, 0)
    arbiter.request("b", 1, 0)
    assert arbiter.gone("a", 1, MS) == []
    assert arbiter.account("a", MS).state is State.HOLDING
    assert arbiter.gone("a", 2, 2 * MS) == [Grant("b", 3, True)]


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


def test_the_queue_is_uncapped_only_after_a_rival_has_been_away_for_long() -> None:
    arbiter = device(a=50, b=50)
    arbiter.request("b", 1, 0)
    arbiter.release("b", 1, 1, MS, False, MS)
    arbiter.tick(MS + 300 * US)  # it sleeps
    arbiter.request("a", 1, 2 * MS)
    assert arbiter.deadline_ns() == S + MS + 300 * US
    assert arbiter.tick(S) == []
    assert arbiter.tick(S + MS + 300 * US) == [Contend("a", 2, False)]
    assert arbiter.deadline_ns() is None


def test_the_queue_stays_capped_while_one_of_the_latency_class_may_come() -> None:
    arbiter = device(a=Share(30, 100, latency=True), b=70)
    assert arbiter.request("b", 1, 0) == [Grant("b", 1, True)]
    assert arbiter.deadline_ns() is None
    assert arbiter.gone("a", 1, 10 * S) == [Contend("b", 1, False)]
    assert arbiter.join("a", 2, 11 * S) == [Contend("b", 1, True)]


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


def test_numbers_begin_again_after_the_last_that_fits_the_gate() -> None:
    arbiter = device(a=50)
    arbiter.join("a", 2, 0)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, 0, False, 0)
    arbiter._mode.grants._numbers.last = MAX_NUMBER - 1
    assert arbiter.request("a", 1, 1) == [Grant("a", MAX_NUMBER, False)]
    assert arbiter.request("a", 2, 2) == [Grant("a", 1, False)]
    arbiter.release("a", 2, 1, 0, False, 3)
    # The first may answer the number that it was given, or the later one.
    arbiter.release("a", 1, 1, 0, False, 3)
    assert arbiter.account("a", 3).state is State.IDLE
