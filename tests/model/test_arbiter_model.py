"""Whatever clients do, and in whatever order, the arbiter keeps to what it promises."""

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Revoke
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.world import NAMES, SETTINGS, ArbiterWorld, SimulatedAllocation, SimulatedClient
from tests.kit.properties.examples import examples

DELAYS_NS = st.sampled_from([1, 7 * US, 150 * US, 301 * US, 1 * MS, 5 * MS, 17 * MS, 80 * MS, 700 * MS])


class ArbiterMachine(ArbiterWorld):
    """Clients that keep to the protocol, clients that lie or stop, and allocations that come and go."""

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
            max_examples=examples(150), stateful_step_count=50, deadline=None, derandomize=True, print_blob=False
        ),
    )
