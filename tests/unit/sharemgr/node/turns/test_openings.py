"""Several that are let in at once: what each is told, event by event."""

from dataclasses import dataclass

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Contend, Grant, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
STEP_NS = MS // 4
NEVER_NS = 3600 * S


@dataclass
class Program:
    """One client, as its page and its records show it."""

    part: float
    """Of the time that its gate is open: so much it uses. 1: it never pauses."""
    drain_ns: int
    works: bool = True
    number: int = 0
    owes: int = 0
    waits: bool = False
    drains_at_ns: int = 0
    kernel_ns: int = 0
    """If its kernels are long: what runs of one, and is in no counter yet, ends after so long."""
    running_ns: int = 0
    undrained_ns: int = 0
    unsaid_ns: int = 0  # GPU time since it gave back a grant
    used_ns: int = 0


class Device:
    """A device on which programs run, and its arbiter; each allocation has one client, which keeps to the protocol."""

    def __init__(self, **shares: Share | int) -> None:
        self.arbiter = Arbiter(SETTINGS)
        self.now_ns = 0
        self.programs: dict[str, Program] = {}
        self.said: list[Command] = []
        self.looked_ns: list[int] = []
        self.watched = True
        self.seen_ns = self.busy_ns = 0
        for name, share in shares.items():
            self.arbiter.add(name, share if isinstance(share, Share) else Share(share, 100), 0)
            self.arbiter.join(name, 1, 0, beside=True)
        self.arbiter.see(0, 0)

    def start(self, name: str, part: float, drain_ns: int = 500 * US) -> None:
        """The program has work, and waits at its gate."""
        self.programs[name] = Program(part, drain_ns)
        self.ask(name)

    def ask(self, name: str) -> None:
        program = self.programs[name]
        program.works = program.waits = True
        self.read()
        self.do(self.arbiter.request(name, 1, self.now_ns))

    def stop(self, name: str) -> None:
        """It has no work any more, once its launch has passed its gate, and gives back its grant."""
        while self.programs[name].waits:
            self.step()
        self.programs[name].works = False
        self.release(name)

    def release(self, name: str) -> None:
        program = self.programs[name]
        number, program.owes, program.number = program.number or program.owes, 0, 0
        program.waits, program.undrained_ns = program.works, 0
        gpu_ns, program.unsaid_ns = program.unsaid_ns, 0
        self.read()
        self.do(self.arbiter.release(name, 1, number, gpu_ns, program.works, self.now_ns))

    def read(self, gpu_ns: dict[str, int] | None = None, elapsed_ns: int = 0) -> None:
        for name, program in self.programs.items():
            used_ns = (gpu_ns or {}).get(name, 0)
            program.undrained_ns += used_ns
            queued = program.owes > 0 and program.works and (program.part == 1 or not program.number)
            idle_ns = 0 if queued or program.waits else elapsed_ns - used_ns
            undrained_ns = program.undrained_ns if queued else 0
            if self.arbiter.rests(name):
                assert (used_ns, program.waits, queued) == (0, True, False)
                continue
            self.arbiter.read(
                name,
                Use(
                    used_ns,
                    idle_ns,
                    undrained_ns,
                    program.waits,
                    queued,
                    program.running_ns if queued else 0,
                    program.unsaid_ns,
                ),
                self.now_ns,
            )
            if self.arbiter.beside:
                # It has been charged with it.
                program.unsaid_ns = 0

    def do(self, commands: list[Command]) -> None:
        self.said += commands
        for command in commands:
            program = self.programs[command.allocation_id]
            match command:
                case Grant(_, number):
                    # What it still owed of a drain that was given up is forgiven.
                    program.owes = program.owes if program.number else number
                    program.number, program.waits = number, False
                case Revoke():
                    program.number = 0
                    busy = program.part == 1 and program.works
                    program.drains_at_ns = self.now_ns + (program.drain_ns if busy else 0)

    def run(self, for_ns: int) -> list[Command]:
        """Time passes; what was said meanwhile."""
        self.said = []
        until_ns = self.now_ns + for_ns
        while self.now_ns < until_ns:
            self.step()
        return self.said

    def step(self) -> None:
        self.now_ns += STEP_NS
        free_ns = STEP_NS
        gpu_ns = dict[str, int]()
        for name, program in sorted(self.programs.items(), key=lambda item: item[1].part):
            draining = program.owes and not program.number and program.drain_ns < NEVER_NS
            if program.works and (program.number or draining):
                used_ns = min(free_ns, int(STEP_NS * program.part))
                free_ns -= used_ns
                if program.kernel_ns:
                    program.running_ns += used_ns
                    used_ns = program.kernel_ns if program.running_ns >= program.kernel_ns else 0
                    program.running_ns -= used_ns
                gpu_ns[name] = used_ns
                program.unsaid_ns += used_ns
                program.used_ns += used_ns
        self.busy_ns += STEP_NS - free_ns
        self.read(gpu_ns, STEP_NS)
        deadline_ns = self.arbiter.deadline_ns()
        if deadline_ns is not None and deadline_ns <= self.now_ns:
            self.looked_ns.append(self.now_ns)
            self.do(self.arbiter.tick(self.now_ns))
        else:
            self.arbiter.account(next(iter(self.programs)), self.now_ns)
        if self.watched and self.now_ns >= self.seen_ns + S:
            busy_ns, self.busy_ns, self.seen_ns = self.busy_ns, 0, self.now_ns
            self.do(self.arbiter.see(busy_ns, self.now_ns))
        for name, program in self.programs.items():
            if program.owes and not program.number and self.now_ns >= program.drains_at_ns and not program.running_ns:
                self.release(name)

    def an_old_one_comes(self) -> None:
        """A client of version 1, which cannot be let in beside others."""
        self.arbiter.add("old", Share(5, 100), self.now_ns)
        self.read()
        self.do(self.arbiter.join("old", 1, self.now_ns, beside=False))

    def run_until_turns(self) -> None:
        """All drain first."""
        while self.arbiter.beside:
            self.step()

    def run_until_beside(self) -> None:
        for _ in range(4 * 2000):
            if self.arbiter.beside:
                return
            self.step()
        raise AssertionError("it is turns still")

    def account(self, name: str) -> Account:
        self.read()
        return self.arbiter.account(name, self.now_ns)

    def accounts(self) -> dict[str, State]:
        return {name: self.account(name).state for name in self.programs}


def one_light(light: int = 40, **others: int) -> Device:
    """One that uses a fifth of the device and is guaranteed more, in beside others that never pause."""
    device = Device(light=light, **others)
    device.start("light", 0.2)
    for name in others:
        device.start(name, 1)
    device.run_until_beside()
    device.run(S)
    return device


def one_in(device: Device) -> tuple[str, str]:
    """Which of the two that never pause is in, as soon as one is; and the other."""
    while True:
        for name, other in (("one", "two"), ("two", "one")):
            if device.programs[name].number:
                return name, other
        device.step()


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


def test_going_to_turns_calls_everybody_back_and_nothing_that_waits_is_lost() -> None:
    device = one_light(one=30, two=30)
    one_in(device)
    inside = {name for name, state in device.accounts().items() if state is State.HOLDING}
    assert len(inside) == 2
    device.said = []
    device.an_old_one_comes()
    assert {each.allocation_id for each in device.said if isinstance(each, Revoke)} == inside
    assert not any(isinstance(each, Grant) for each in device.said)
    device.run_until_turns()
    said = device.said + device.run(50 * MS)
    assert {each.allocation_id for each in said if isinstance(each, Grant)} == {"light", "one", "two"}
    assert list(device.accounts().values()).count(State.HOLDING) <= 1


def test_a_limit_holds_however_often_one_goes_to_turns_and_back() -> None:
    device = Device(light=30, other=30, limited=Share(20, 20))
    device.start("light", 0.2)
    device.start("other", 1)
    device.start("limited", 1)
    device.run_until_beside()
    begin_ns, used_ns = device.now_ns, device.programs["limited"].used_ns
    for _ in range(50):
        device.an_old_one_comes()
        device.run_until_turns()
        device.do(device.arbiter.remove("old", device.now_ns))
        assert not device.arbiter.beside
        device.run_until_beside()
    span_ns = device.now_ns - begin_ns + SETTINGS.limit_burst_ns
    most_ns = span_ns * 20 // 100 + SETTINGS.slice_ns + MS
    assert device.programs["limited"].used_ns - used_ns <= most_ns


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


def test_several_are_let_in_again_after_turns_and_whoever_waits_with_them() -> None:
    device = one_light(one=30, two=30)
    device.an_old_one_comes()
    device.run(300 * MS)
    assert not device.arbiter.beside
    device.do(device.arbiter.remove("old", device.now_ns))
    device.run_until_beside()
    said = device.run(50 * MS)
    assert {each.allocation_id for each in said if isinstance(each, Grant)} >= {"one", "two"}
    assert device.account("light").state is State.HOLDING


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


@pytest.mark.parametrize("says", [True, False])
def test_a_device_of_which_nobody_says_how_busy_it_is_takes_turns(says: bool) -> None:
    device = one_light(heavy=40)
    device.watched = says
    device.run(5 * S)
    assert device.arbiter.beside is says


def test_a_device_of_which_nobody_ever_said_how_busy_it_is_takes_turns() -> None:
    arbiter = Arbiter(SETTINGS)
    device = Device(light=40, heavy=40)
    device.arbiter, device.watched = arbiter, False
    for name in ("light", "heavy"):
        arbiter.add(name, Share(40, 100), 0)
        arbiter.join(name, 1, 0, beside=True)
    device.start("light", 0.05)
    device.start("heavy", 1)
    device.run(2 * S)
    assert not arbiter.beside


def test_long_kernels_while_it_is_turns_are_not_taken_for_lies() -> None:
    device = Device(light=30, one=30, two=30)
    for name in ("one", "two"):
        device.start(name, 1)
        device.programs[name].kernel_ns = 700 * MS
    device.run(6 * S)
    assert not device.arbiter.beside
    device.start("light", 0.05)
    device.run_until_beside()


def test_what_others_did_before_anybody_came_is_no_lie() -> None:
    device = Device(light=40, heavy=60)
    device.arbiter = Arbiter(SETTINGS)
    device.arbiter.see(0, 0)
    for name, percent in (("light", 40), ("heavy", 60)):
        device.arbiter.add(name, Share(percent, 100), 0)
        device.arbiter.join(name, 1, 0, beside=True)
    # A program without a hook had the device for seconds, and has ended.
    device.arbiter.see(5 * S, 0)
    device.start("light", 0.2)
    device.start("heavy", 1)
    device.run_until_beside()
