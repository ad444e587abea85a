"""Several that are let in at once: what each is told, event by event."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Command, Contend, Grant, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Share
from tests.kit.sim.device.openings import NEVER_NS, SETTINGS, Device, one_in, one_light


def of(name: str, commands: list[Command]) -> list[Command]:
    return [command for command in commands if command.allocation_id == name]


def opened_and_closed(commands: list[Command]) -> list[tuple[str, str]]:
    return [(type(each).__name__, each.allocation_id) for each in commands if isinstance(each, Grant | Revoke)]


def test_a_light_one_keeps_its_gate_while_a_heavy_one_comes_and_goes() -> None:
    device = one_light(heavy=40)
    for _ in range(20):
        device.stop("heavy")
        assert of("light", device.run(7 * MS)) == []
        device.said = []
        device.ask("heavy")
        assert of("heavy", device.said) != []
        assert of("light", device.said + device.run(7 * MS)) == []
    assert device.accounts()["light"] is State.HOLDING


def test_a_light_one_that_begins_to_use_more_of_its_guarantee_keeps_its_gate() -> None:
    device = Device(light=30, one=30, two=30)
    device.start("light", 0.02)
    device.run(500 * MS)
    device.start("one", 1)
    device.start("two", 1)
    device.run_until_beside()
    device.run(10 * MS)
    device.programs["light"].part = 0.25
    assert of("light", device.run(60 * MS)) == []
    # By what it used as a rule it is ahead of its part, and its deadline is the last one.
    assert device.account("light").lag_ns < 0


def test_heavy_ones_take_turns_and_the_second_is_let_in_once_the_first_has_released() -> None:
    device = one_light(one=30, two=30)
    first, second = one_in(device)
    said = opened_and_closed(device.run(200 * MS))
    assert len(said) > 20
    turns = [("Revoke", first), ("Grant", second), ("Revoke", second), ("Grant", first)]
    assert said == (turns * len(said))[: len(said)]


def test_a_heavy_one_is_let_in_only_when_the_other_has_drained() -> None:
    device = one_light(one=30, two=30)
    first, _ = one_in(device)
    device.programs[first].drain_ns = 30 * MS
    while device.programs[first].number:
        device.step()
    assert not any(isinstance(command, Grant) for command in device.run(29 * MS))
    assert any(isinstance(command, Grant) for command in device.run(2 * MS))


def test_one_that_was_heavy_when_it_was_called_back_is_so_until_it_has_drained() -> None:
    device = one_light(one=30, two=30)
    first, _ = one_in(device)
    device.programs[first].drain_ns = 60 * MS
    while device.programs[first].number:
        device.step()
    # It was so for a long burst alone, and has not had more than its guarantee any more.
    gate = device.arbiter.contenders[first].gate
    gate.demand.recent, gate.bucket_ns = 0.5, 0
    device.programs[first].part = 0.1
    assert not any(isinstance(command, Grant) for command in device.run(50 * MS))
    assert any(isinstance(command, Grant) for command in device.run(20 * MS))


def test_the_pages_of_one_that_is_kept_out_are_read_no_more_until_it_is_let_in() -> None:
    device = one_light(one=30, two=30)
    inside, waiting = one_in(device)
    arbiter = device.arbiter
    device.read()
    assert [arbiter.rests(name) for name in ("light", inside, waiting)] == [False, False, True]
    arbiter.read(waiting, Use(gpu_ns=1, waits=True), device.now_ns)
    assert not arbiter.rests(waiting)
    arbiter.read(waiting, Use(waits=True, unheard_ns=1), device.now_ns)
    assert not arbiter.rests(waiting)
    arbiter.read(waiting, Use(waits=True, queued=True), device.now_ns)
    assert not arbiter.rests(waiting)
    device.read()
    assert arbiter.rests(waiting)
    while not device.programs[waiting].number:
        device.step()
    assert not arbiter.rests(waiting)


def test_a_latency_client_with_work_is_in_alone() -> None:
    device = Device(light=30, heavy=30, urgent=Share(30, 100, latency=True))
    device.start("light", 0.05)
    device.start("heavy", 1)
    device.run_until_beside()
    device.run(S)
    device.said = []
    device.start("urgent", 1)
    assert ("Revoke", "light") in opened_and_closed(device.said)
    device.run(3 * MS)
    assert device.account("urgent").state is State.HOLDING
    assert device.accounts()["light"] is device.accounts()["heavy"] is State.WAITING
    device.stop("urgent")
    device.run(SETTINGS.slice_ns)
    assert device.accounts()["light"] is device.accounts()["heavy"] is State.HOLDING


def test_a_latency_client_whose_work_never_ends_keeps_the_others_out_for_its_budget_alone() -> None:
    device = Device(light=30, heavy=30, urgent=Share(20, 100, latency=True))
    device.start("light", 0.05)
    device.start("heavy", 1)
    device.run_until_beside()
    device.start("urgent", 1)
    # What it has queued waits for something else, and uses nothing.
    device.programs["urgent"].kernel_ns = NEVER_NS
    device.programs["light"].used_ns = 0
    device.run(S)
    assert device.arbiter.beside
    budget_ns = S * 20 // 100 + SETTINGS.budget_period_ns
    assert device.programs["light"].used_ns >= 0.05 * (S - budget_ns) - MS


def test_one_that_is_over_its_limit_is_kept_out_and_its_account_says_so() -> None:
    device = Device(light=30, other=30, limited=Share(10, 10))
    device.start("light", 0.05)
    device.start("other", 0.05)
    device.start("limited", 1)
    device.run_until_beside()
    for _ in range(4000):
        device.step()
        if device.account("limited").throttled:
            break
    account = device.account("limited")
    assert account.beside
    assert account.throttled
    assert account.state is State.WAITING
    # Nobody else is in its way, and it waits.
    before_ns = account.gpu_ns
    device.run(10 * S)
    assert device.arbiter.beside
    account = device.account("limited")
    assert 0.9 * S <= account.gpu_ns <= 0.1 * (10 * S + SETTINGS.limit_burst_ns) + SETTINGS.slice_ns + MS, before_ns


def test_a_drain_that_never_ends_is_given_up_and_its_waiting_launch_takes_part_again() -> None:
    device = one_light(one=30, two=30)
    stuck, other = one_in(device)
    device.programs[stuck].drain_ns = NEVER_NS
    while device.programs[stuck].number:
        device.step()
    # A launch is at the gate: what is queued waits for it.
    device.ask(stuck)
    assert device.account(stuck).state is State.DRAINING
    assert device.account(other).state is State.WAITING
    said = device.run(SETTINGS.drain_grace_ns + 20 * MS)
    assert device.account(stuck).overruns == 1
    assert {each.allocation_id for each in said if isinstance(each, Grant)} == {stuck, other}


def test_a_drain_that_never_ends_and_has_no_launch_waiting_is_left_alone() -> None:
    device = one_light(one=30, two=30)
    stuck, _ = one_in(device)
    device.programs[stuck].drain_ns = NEVER_NS
    while device.programs[stuck].number:
        device.step()
    device.run(SETTINGS.drain_grace_ns + 20 * MS)
    assert device.account(stuck).overlapping
    assert device.account("light").state is State.HOLDING


def test_one_whose_launch_waits_while_it_drains_takes_part_in_the_turns_that_come() -> None:
    device = one_light(one=30, two=30)
    stuck, _ = one_in(device)
    device.programs[stuck].drain_ns = NEVER_NS
    while device.programs[stuck].number:
        device.step()
    device.ask(stuck)
    device.an_old_one_comes()
    device.run_until_turns()
    assert any(isinstance(command, Grant) for command in of(stuck, device.said + device.run(200 * MS)))


def test_one_that_was_granted_ahead_of_a_drain_waits_no_more_once_several_are_let_in() -> None:
    device = Device(light=40, one=30, two=30)
    device.watched = False
    device.start("light", 0.2)
    device.run(5 * S)
    for name in ("one", "two"):
        device.start(name, 1, drain_ns=30 * MS)
    drains, _ = one_in(device)
    while device.programs[drains].number:
        device.step()
    ends_at_ns = device.now_ns + 30 * MS
    early = device.arbiter.draining(drains, 1, device.programs[drains].owes, ends_at_ns, device.now_ns)
    device.do(early)
    next_one = early[0].allocation_id
    assert device.account(next_one).waiting_ns > 0
    device.read()
    device.do(device.arbiter.see(0, device.now_ns))
    assert device.arbiter.beside
    assert device.account(next_one).state is State.HOLDING
    assert device.account(next_one).waiting_ns == 0
    device.run(10 * MS)
    assert device.account(next_one).waiting_ns == 0 or device.account(next_one).state is not State.HOLDING


def test_a_heavy_one_beside_light_ones_keeps_its_queue_short() -> None:
    device = one_light(heavy=40)
    assert device.arbiter.queue_of("heavy") == (True, Rule().heavy_queue_ns)
    assert device.arbiter.queue_of("light") == (False, SETTINGS.queue_cap_ns)
    # Where all have room, nobody has to.
    device.stop("heavy")
    device.programs["heavy"].part = 0.1
    device.ask("heavy")
    device.run(5 * S)
    assert device.arbiter.beside
    assert device.arbiter.queue_of("heavy") == (False, SETTINGS.queue_cap_ns)


def test_one_that_turns_out_to_be_heavy_is_told_so_while_it_is_in() -> None:
    device = Device(light=40, heavy=40)
    device.start("light", 0.2)
    device.run(50 * MS)
    device.start("heavy", 0.2)
    device.run_until_beside()
    device.run(200 * MS)
    assert device.arbiter.queue_of("heavy") == (False, SETTINGS.queue_cap_ns)
    device.programs["heavy"].part = 1
    said = device.run(2 * S)
    assert {each.allocation_id for each in said if isinstance(each, Contend)} == {"heavy"}
    assert device.arbiter.queue_of("heavy") == (True, Rule().heavy_queue_ns)


def test_a_long_kernel_is_charged_in_full_at_its_end_and_its_time_is_nobodys_before() -> None:
    device = one_light(heavy=40)
    device.programs["heavy"].kernel_ns = 60 * MS
    lag_ns, gpu_ns = device.account("heavy").lag_ns, device.account("heavy").gpu_ns
    device.run(50 * MS)
    assert device.programs["heavy"].running_ns > 0
    assert device.account("heavy").gpu_ns == gpu_ns
    assert device.account("heavy").lag_ns >= lag_ns
    device.run(30 * MS)
    assert device.account("heavy").gpu_ns - gpu_ns == 60 * MS


def test_one_rarely_looks_at_a_device_on_which_nobody_works() -> None:
    device = one_light(heavy=40)
    for name in ("heavy", "light"):
        device.stop(name)
    device.watched = False
    device.run(200 * MS)
    device.looked_ns.clear()
    device.run(S)
    assert len(device.looked_ns) <= 10
