"""Whatever clients do, and in whatever order, the arbiter keeps to what it promises."""

from dataclasses import dataclass, field

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Begin, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
NAMES = ("a", "b", "c", "d")
DELAYS_NS = st.sampled_from([1, 7 * US, 150 * US, 301 * US, 1 * MS, 5 * MS, 17 * MS, 80 * MS, 700 * MS])


@dataclass
class SimulatedClient:
    """What a client knows: its gate, and whether it has asked."""

    number: int = 0  # that its gate shows; 0: closed
    owes: int = 0  # the first number that it has not released
    given_up: int = 0  # that number, if it takes part again without having drained
    waits: bool = False
    seen: bool = False


@dataclass
class SimulatedAllocation:
    share: Share
    clients: dict[int, SimulatedClient] = field(default_factory=dict)
    granted_ns: int = 0
    gpu_ns: int = 0  # as the arbiter must believe it, of this grant
    bucket_ns: int = 0  # GPU time ahead of the limit's rate
    bucket_at_ns: int = 0


class ArbiterMachine(RuleBasedStateMachine):
    """Clients that keep to the protocol, clients that lie or stop, and allocations that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.arbiter = Arbiter(SETTINGS)
        self.now_ns = 0
        self.allocations: dict[str, SimulatedAllocation] = {}
        self.holder: str | None = None  # whose gates are open
        self.contended = False
        self.numbers: set[int] = set()
        self.next_client = 1
        self.free_since_ns, self.kept_from_one_ahead = 0, False
        self.foretold: set[str] = set()  # who ever said when it would have drained

    # The world.

    def perform(self, commands: list[Command]) -> None:
        for command in commands:
            allocation = self.allocations[command.allocation_id]
            match command:
                case Grant(name, number, contended):
                    assert self.holder in (None, name), "granted while another holds"
                    assert number not in self.numbers, "a number was used twice"
                    self.numbers.add(number)
                    anew = self.holder is None
                    if anew:
                        self.check_limit(name, allocation)
                        allocation.granted_ns = self.now_ns
                        allocation.gpu_ns = 0
                        assert any(client.waits for client in allocation.clients.values()), "granted without work"
                    self.holder, self.contended = name, contended
                    for client in allocation.clients.values():
                        if client.seen:
                            client.number = number
                            # What it still owed of a drain that was given up is forgiven.
                            client.owes = number if anew else client.owes or number
                            client.given_up = 0
                            client.waits = False
                case Contend(name, _, contended):
                    assert self.holder == name
                    assert contended != self.contended
                    self.contended = contended
                case Begin(name, number, _):
                    assert name == self.holder
                    assert number in self.numbers
                case Prolong(name, number):
                    assert self.holder == name
                    assert number in self.numbers
                    assert self.contended, "nobody has to know when nobody waits"
                    assert self.arbiter.slice_end_ns() == 0 or self.arbiter.slice_end_ns() > self.now_ns
                case Revoke(name, number):
                    assert self.holder == name
                    assert number in self.numbers
                    self.holder = None
                    for client in allocation.clients.values():
                        client.number = 0
        name = self.holder
        if name is not None and not any(client.owes for client in self.allocations[name].clients.values()):
            self.holder = None

    def check_limit(self, name: str, allocation: SimulatedAllocation) -> None:
        """At a grant no more than the burst may be ahead of the limit's rate."""
        limit_percent = allocation.share.limit_percent
        drained_ns = (self.now_ns - allocation.bucket_at_ns) * limit_percent // 100
        allocation.bucket_ns = max(0, allocation.bucket_ns - drained_ns)
        allocation.bucket_at_ns = self.now_ns
        if limit_percent < 100:
            most_ns = SETTINGS.limit_burst_ns * limit_percent // 100
            assert allocation.bucket_ns <= most_ns + 10 * MS // 1000, f"{name} is over its limit"

    def report(self, allocation: SimulatedAllocation, gpu_ns: int) -> None:
        believed_ns = max(0, min(gpu_ns, self.now_ns - allocation.granted_ns - allocation.gpu_ns))
        allocation.gpu_ns += believed_ns
        allocation.bucket_ns += believed_ns

    def pass_time(self, until_ns: int) -> None:
        """To a time, with a tick whenever one is due."""
        while True:
            deadline_ns = self.arbiter.deadline_ns()
            if deadline_ns is None or deadline_ns > until_ns:
                break
            self.now_ns = max(self.now_ns, deadline_ns)
            self.perform(self.arbiter.tick(self.now_ns))
            after_ns = self.arbiter.deadline_ns()
            assert after_ns is None or after_ns > self.now_ns, "a tick must do what is due"
            self.check_work_conservation()
        self.now_ns = max(self.now_ns, until_ns)

    def check_work_conservation(self) -> None:
        """The device is free while somebody waits only while another is expected: for a slice, if one waits ahead."""
        accounts = [self.arbiter.account(name, self.now_ns) for name in self.allocations]
        taken = any(each.state in (State.HOLDING, State.DRAINING) and not each.overlapping for each in accounts)
        wanted = [each for each in accounts if each.state is State.WAITING and not each.throttled]
        if taken or not wanted:
            self.free_since_ns, self.kept_from_one_ahead = self.now_ns, False
        self.kept_from_one_ahead |= any(each.lag_ns < 0 for each in wanted)
        # Several may be waited for one after the other.
        most_ns = len(NAMES) * (SETTINGS.slice_ns if self.kept_from_one_ahead else SETTINGS.anticipation_ns)
        assert self.now_ns - self.free_since_ns <= most_ns, "the device idles while somebody waits"

    # What can happen.

    @initialize(shares=st.lists(st.integers(5, 40), min_size=2, max_size=4))
    def begin(self, shares: list[int]) -> None:
        for name, request_percent in zip(NAMES, shares, strict=False):
            self.add_allocation(name, request_percent)

    def add_allocation(self, name: str, request_percent: int, limit_percent: int = 100, latency: bool = False) -> None:
        taken_percent = sum(each.share.request_percent for each in self.allocations.values())
        if name in self.allocations or taken_percent + request_percent > 100:
            return
        share = Share(request_percent, max(limit_percent, request_percent), latency)
        self.allocations[name] = SimulatedAllocation(share, bucket_at_ns=self.now_ns)
        self.perform(self.arbiter.add(name, share, self.now_ns))
        self.join(name)

    @rule(
        name=st.sampled_from(NAMES),
        request_percent=st.integers(5, 40),
        limit_percent=st.sampled_from([10, 40, 100]),
        latency=st.booleans(),
    )
    def add(self, name: str, request_percent: int, limit_percent: int, latency: bool) -> None:
        self.add_allocation(name, request_percent, limit_percent, latency)

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name in self.allocations:
            commands = self.arbiter.remove(name, self.now_ns)
            if self.holder == name:
                assert commands[0] == Revoke(name, commands[0].number)
            for client in self.allocations[name].clients.values():
                client.owes = 0
            self.perform(commands)
            del self.allocations[name]

    @rule(name=st.sampled_from(NAMES))
    def join(self, name: str) -> None:
        allocation = self.allocations.get(name)
        if allocation is not None and len(allocation.clients) < 3:
            allocation.clients[self.next_client] = SimulatedClient()
            self.perform(self.arbiter.join(name, self.next_client, self.now_ns))
            self.next_client += 1

    @rule(data=st.data())
    def gone(self, data: st.DataObject) -> None:
        found = self.draw_client(data)
        if found is not None:
            name, client_id, client = found
            if client.owes:
                # What it did since its last report is not known here; the bucket is checked from below only.
                self.allocations[name].gpu_ns = self.now_ns - self.allocations[name].granted_ns
            del self.allocations[name].clients[client_id]
            self.perform_release(name, self.arbiter.gone(name, client_id, self.now_ns))

    @rule(data=st.data())
    def request(self, data: st.DataObject) -> None:
        found = self.draw_client(data)
        if found is not None:
            name, client_id, client = found
            if not client.number:
                client.waits = client.seen = True
            holder, latency = self.holder, self.allocations[name].share.latency
            slice_end_ns = self.arbiter.turn_end_ns()
            commands = self.arbiter.request(name, client_id, self.now_ns)
            if holder is not None and any(isinstance(command, Revoke) for command in commands) and not latency:
                held_ns = self.now_ns - self.allocations[holder].granted_ns
                assert self.now_ns >= slice_end_ns or held_ns >= SETTINGS.least_turn_ns, "called back too soon"
            self.perform(commands)

    @rule(
        data=st.data(),
        follows=st.booleans(),
        gpu_ns=st.one_of(st.integers(0, 20 * MS), st.just(3600 * S)),
    )
    def release(self, data: st.DataObject, follows: bool, gpu_ns: int) -> None:
        found = self.draw_client(data)
        if found is not None and found[2].owes:
            self.let_release(*found, follows=follows, gpu_ns=gpu_ns)

    def let_release(self, name: str, client_id: int, client: SimulatedClient, *, follows: bool, gpu_ns: int) -> None:
        number = client.number or client.owes
        client.owes = client.number = 0
        client.waits = client.waits or follows
        self.report(self.allocations[name], gpu_ns)
        commands = self.arbiter.release(name, client_id, number, gpu_ns, follows, self.now_ns)
        self.perform_release(name, commands)

    def perform_release(self, name: str, commands: list[Command]) -> None:
        """A release may end the hold without a word: then others may be granted by the same commands."""
        still_open = any(client.owes for client in self.allocations[name].clients.values())
        if self.holder == name and not still_open:
            self.holder = None
        self.perform(commands)

    @rule(data=st.data(), number=st.integers(-1, 1 << 31), gpu_ns=st.integers(0, S))
    def say_something_stale(self, data: st.DataObject, number: int, gpu_ns: int) -> None:
        found = self.draw_client(data)
        if found is not None:
            name, client_id, client = found
            if client.owes <= number <= max(self.numbers, default=0) and client.owes:
                return
            if number and number == client.given_up:
                return
            self.say_stale(name, client_id, number, gpu_ns)

    def say_stale(self, name: str, client_id: int, number: int, gpu_ns: int = MS) -> None:
        """Nothing comes of it."""
        before = self.arbiter.account(name, self.now_ns)
        assert self.arbiter.release(name, client_id, number, gpu_ns, True, self.now_ns) == []
        assert self.arbiter.usage(name, client_id, number, gpu_ns, self.now_ns) == []
        assert self.arbiter.account(name, self.now_ns) == before

    @rule(data=st.data(), gpu_ns=st.integers(0, 200 * MS))
    def report_usage(self, data: st.DataObject, gpu_ns: int) -> None:
        found = self.draw_client(data)
        if found is not None and found[2].owes:
            name, client_id, client = found
            self.report(self.allocations[name], gpu_ns)
            number = client.number or client.owes
            assert self.arbiter.usage(name, client_id, number, gpu_ns, self.now_ns) == []

    @rule(data=st.data(), follows=st.booleans(), gpu_ns=st.integers(0, 200 * MS))
    def drain_late(self, data: st.DataObject, follows: bool, gpu_ns: int) -> None:
        """One that takes part again has drained after all: what it says of its GPU time is heard once, and grants
        nothing."""
        late = [found for found in self.known_clients() if found[2].given_up and not found[2].owes]
        if not late:
            return
        name, client_id, client = data.draw(st.sampled_from(late))
        number, client.given_up = client.given_up, 0
        client.waits = client.waits or follows
        before = self.arbiter.account(name, self.now_ns)
        self.report(self.allocations[name], gpu_ns)
        assert self.arbiter.release(name, client_id, number, gpu_ns, follows, self.now_ns) == []
        after = self.arbiter.account(name, self.now_ns)
        assert before.gpu_ns <= after.gpu_ns <= before.gpu_ns + gpu_ns
        assert (after.grants, after.lag_ns) == (before.grants, before.lag_ns)
        self.say_stale(name, client_id, number)

    @precondition(lambda self: self.draining())
    @rule(data=st.data(), delay_ns=st.integers(-MS, 20 * MS), late_ns=DELAYS_NS)
    def foretell(self, data: st.DataObject, delay_ns: int, late_ns: int) -> None:
        """A client whose grant was called back says when it will have drained, and drains then or later."""
        name, client_id, client = data.draw(st.sampled_from(self.draining()))
        ends_at_ns = max(0, self.now_ns + delay_ns)
        self.foretold.add(name)
        self.perform(self.arbiter.draining(name, client_id, client.owes, ends_at_ns, self.now_ns))
        self.pass_time(max(self.now_ns, ends_at_ns) + late_ns)

    @rule(name=st.sampled_from(NAMES), latency=st.booleans())
    def change_class(self, name: str, latency: bool) -> None:
        allocation = self.allocations.get(name)
        if allocation is not None:
            share = allocation.share
            allocation.share = Share(share.request_percent, share.limit_percent, latency)
            self.perform(self.arbiter.update(name, allocation.share, self.now_ns))

    @rule(delay_ns=DELAYS_NS)
    def wait(self, delay_ns: int) -> None:
        self.pass_time(self.now_ns + delay_ns)

    @precondition(lambda self: any(self.allocations.values()))
    @rule()
    def behave_until_all_were_served(self) -> None:
        """From here on everybody drains 1 ms after he is revoked: then each that waits gets his turn."""
        waiting = {
            name
            for name, allocation in self.allocations.items()
            if any(client.waits for client in allocation.clients.values())
        }
        before = {name: self.arbiter.account(name, self.now_ns).grants for name in waiting}
        for _ in range(20_000):
            waiting = {name for name in waiting if self.arbiter.account(name, self.now_ns).grants == before[name]}
            if not waiting:
                return
            self.pass_time(self.now_ns + MS)
            for name, allocation in self.allocations.items():
                for client_id, client in list(allocation.clients.items()):
                    if client.owes and not client.number:
                        self.let_release(name, client_id, client, follows=True, gpu_ns=5 * MS)
        raise AssertionError(f"{waiting} wait for ever")

    def draining(self) -> list[tuple[str, int, SimulatedClient]]:
        """The clients that have yet to give back a grant that was called back."""
        return [
            (name, client_id, client)
            for name, allocation in self.allocations.items()
            for client_id, client in allocation.clients.items()
            if client.owes and not client.number
        ]

    def known_clients(self) -> list[tuple[str, int, SimulatedClient]]:
        return [
            (name, client_id, client)
            for name, allocation in self.allocations.items()
            for client_id, client in allocation.clients.items()
        ]

    def draw_client(self, data: st.DataObject) -> tuple[str, int, SimulatedClient] | None:
        known = self.known_clients()
        return data.draw(st.sampled_from(known)) if known else None

    # What always holds.

    @invariant()
    def one_at_most_has_the_device(self) -> None:
        accounts = {name: self.arbiter.account(name, self.now_ns) for name in self.allocations}
        having = [
            name
            for name, each in accounts.items()
            if each.state in (State.HOLDING, State.DRAINING) and not each.overlapping
        ]
        # Only one that foretold its end may still drain while the next one has the device.
        foretold = [name for name in having if name in self.foretold and accounts[name].state is State.DRAINING]
        assert len(having) <= (2 if foretold else 1)
        holding = [name for name, each in accounts.items() if each.state is State.HOLDING]
        assert holding == ([self.holder] if self.holder is not None else [])

    @invariant()
    def who_waits_is_known(self) -> None:
        for name, allocation in self.allocations.items():
            account = self.arbiter.account(name, self.now_ns)
            waits = any(client.waits for client in allocation.clients.values())
            opened = any(client.owes for client in allocation.clients.values())
            if opened and waits and account.state is State.WAITING:
                # Its drain was given up, and a launch that waits brought it back.
                for client in allocation.clients.values():
                    client.owes, client.given_up = 0, client.owes
            elif opened:
                assert account.state in (State.HOLDING, State.DRAINING)
            else:
                assert account.state is (State.WAITING if waits else State.IDLE)

    @invariant()
    def sums_fit_into_the_window(self) -> None:
        most_ns = min(self.now_ns, SETTINGS.window_ns)
        for each in [self.arbiter.account(name, self.now_ns) for name in self.allocations]:
            # Ahead of another's drain nothing is held, nor while one that was given up, and may run still, is not in.
            free_ns = most_ns if self.foretold or each.overruns else 0
            assert 0 <= each.gpu_ns <= each.held_ns + free_ns
            assert each.held_ns <= most_ns
            assert 0 <= each.waiting_ns <= each.longest_wait_ns

    @invariant()
    def lags_add_up_to_nothing(self) -> None:
        lags = [self.arbiter.account(name, self.now_ns).lag_ns for name in self.allocations]
        assert abs(sum(lags)) <= len(lags) + 1

    @invariant()
    def the_device_does_not_idle(self) -> None:
        self.check_work_conservation()


def test_the_arbiter_keeps_its_promises_whatever_happens() -> None:
    run_state_machine_as_test(
        ArbiterMachine,
        settings=hypothesis_settings(
            max_examples=150, stateful_step_count=50, deadline=None, derandomize=True, print_blob=False
        ),
    )
