"""Whatever clients do and write into their pages, the arbiter keeps to what it promises while it lets several in at
once, while it takes turns, and as it goes from one to the other."""

from collections.abc import Mapping

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import State
from sharemgr.node.turns.commands import Revoke
from sharemgr.node.turns.settings import Share
from tests.kit.arbiter.openings_world import OpeningsWorld
from tests.kit.arbiter.shared_device import HONEST, LIES, SETTINGS, STUCK_NS, Allocation, Client, Found

NAMES = ("a", "b", "c", "d")
DELAYS_NS = st.sampled_from([1, 7 * US, 301 * US, 1 * MS, 5 * MS, 17 * MS, 80 * MS, 300 * MS])
PARTS = st.sampled_from([3, 20, 60, 100])
"""Of the time that its gate is open: how much a client uses. 100: it never pauses."""
RARELY_NS = 100 * MS


class OpeningsMachine(OpeningsWorld):
    """Clients that keep to the protocol, that lie, hang or die, and allocations that come and go."""

    # What can happen.

    @initialize(
        parts=st.lists(PARTS, min_size=2, max_size=4),
        shares=st.lists(st.integers(5, 25), min_size=4, max_size=4),
        limits=st.lists(st.sampled_from([10, 25, 100, 100]), min_size=4, max_size=4),
        mixed=st.booleans(),
        names=st.booleans(),
    )
    def begin(self, parts: list[int], shares: list[int], limits: list[int], mixed: bool, names: bool) -> None:
        """Some programs are there, and have been running for a while."""
        self.names = names
        if mixed:
            parts = [3, 100, 100, *parts][:4]
        for name, part, percent, limit_percent in zip(NAMES, parts, shares, limits, strict=False):
            self.add(name, percent, limit_percent, latency=False, part=part)
        self.see(0)
        for found in self.known_clients():
            self.start(found)
        self.pass_time(300 * MS)

    @rule(
        name=st.sampled_from(NAMES),
        request_percent=st.integers(5, 25),
        limit_percent=st.sampled_from([10, 40, 100, 100]),
        latency=st.booleans(),
        part=PARTS,
    )
    def add(self, name: str, request_percent: int, limit_percent: int, latency: bool, part: int) -> None:
        if name not in self.allocations:
            share = Share(request_percent, max(limit_percent, request_percent), latency)
            self.read_all()
            commands = self.arbiter.add(name, share, self.now_ns)
            self.allocations[name] = Allocation(share)
            self.perform(commands)
            self.join(name, part, HONEST, prompt=True)

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        if name in self.allocations:
            self.read_all()
            was_open = name in self.open
            commands = self.arbiter.remove(name, self.now_ns)
            assert not was_open or commands[0] == Revoke(name, commands[0].number)
            for client in self.allocations.pop(name).clients.values():
                client.owes = client.number = 0
            self.open.discard(name)
            self.waits_from_ns.pop(name, None)
            self.perform(commands[1:] if was_open else commands)

    @rule(
        name=st.sampled_from(NAMES),
        request_percent=st.integers(5, 25),
        limit_percent=st.sampled_from([25, 60, 100]),
        latency=st.booleans(),
    )
    def change_share(self, name: str, request_percent: int, limit_percent: int, latency: bool) -> None:
        allocation = self.allocations.get(name)
        if allocation is not None:
            self.read_all()
            allocation.share = Share(request_percent, limit_percent, latency)
            allocation.excused_ns = allocation.ahead_ns
            self.perform(self.arbiter.update(name, allocation.share, self.now_ns))

    @rule(
        name=st.sampled_from(NAMES),
        part=PARTS,
        lie=st.sampled_from([HONEST, HONEST, *LIES]),
        beside=st.sampled_from([True, True, True, False]),
        prompt=st.booleans(),
        busy=st.booleans(),
    )
    def join(self, name: str, part: int, lie: str, *, prompt: bool, beside: bool = True, busy: bool = False) -> None:
        allocation = self.allocations.get(name)
        if allocation is not None and len(allocation.clients) < 3:
            self.trusted = self.trusted and lie == HONEST
            self.read_all()
            client_id, self.next_client = self.next_client, self.next_client + 1
            client = allocation.clients[client_id] = Client(part, lie, beside, prompt)
            self.perform(self.arbiter.join(name, client_id, self.now_ns, beside))
            if busy:
                self.start((name, client_id, client))
                self.pass_time(self.now_ns + 30 * MS)

    @rule(name=st.sampled_from(NAMES), stays_ns=DELAYS_NS, others_hang=st.booleans())
    def an_old_one_comes_and_goes(self, name: str, stays_ns: int, others_hang: bool) -> None:
        """While it is there it is turns, and for a while longer."""
        if name in self.allocations and len(self.allocations[name].clients) < 3:
            if others_hang:
                for _, _, client in self.known_clients():
                    client.hangs = True
                self.pass_time(self.now_ns + 20 * MS)
            self.join(name, 20, HONEST, prompt=True, beside=False)
            # Those that were let in drain first.
            assert not self.arbiter.beside or not self.open
            self.pass_time(self.now_ns + stays_ns)
            self.remove_client(name, self.next_client - 1)

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        found = self.draw_client(data)
        if found is not None:
            self.remove_client(*found[:2])

    def remove_client(self, name: str, client_id: int) -> None:
        self.read_all()
        del self.allocations[name].clients[client_id]
        if not any(client.owes for client in self.allocations[name].clients.values()):
            self.open.discard(name)
        self.perform(self.arbiter.gone(name, client_id, self.now_ns))

    @rule(data=st.data())
    def begin_work(self, data: st.DataObject) -> None:
        found = self.draw_client(data)
        if found is not None:
            self.start(found)

    def start(self, found: Found) -> None:
        name, client_id, client = found
        client.busy = True
        if not client.seen or (not client.number and not client.owes):
            self.request(name, client_id, client)

    @rule(data=st.data())
    def end_work(self, data: st.DataObject) -> None:
        """One that was told to say when it has drained does so."""
        found = self.draw_client(data)
        if found is not None:
            name, client_id, client = found
            client.busy = False
            if client.prompt and client.number and client.owes and self.arbiter.queue_of(name)[0]:
                self.release(name, client_id, client)

    @rule(data=st.data(), hangs=st.booleans())
    def hang(self, data: st.DataObject, hangs: bool) -> None:
        found = self.draw_client(data)
        if found is not None:
            found[2].hangs = hangs
            self.pass_time(self.now_ns + 150 * MS)

    @rule(data=st.data(), gpu_ns=st.sampled_from([None, None, None, 0, STUCK_NS]))
    def give_back(self, data: st.DataObject, gpu_ns: int | None) -> None:
        """Whenever it likes, and maybe with a lie about its GPU time."""
        found = self.draw_client(data)
        if found is not None and found[2].owes:
            self.trusted = self.trusted and gpu_ns is None
            self.release(*found, gpu_ns=gpu_ns)

    @rule(data=st.data())
    def ask_for_nothing(self, data: st.DataObject) -> None:
        found = self.draw_client(data)
        if found is not None:
            self.request(*found)

    @rule(data=st.data(), delay_ns=st.integers(-MS, 20 * MS))
    def foretell(self, data: st.DataObject, delay_ns: int) -> None:
        """The first one that is called back says when it will have drained, and drains then or not."""
        for _ in range(20):
            if not self.draining():
                self.pass_time(self.now_ns + 300 * US)
        found = self.draw_client(data, owing=True)
        if found is not None:
            name, client_id, client = found
            self.read_all()
            ends_at_ns = max(0, self.now_ns + delay_ns)
            self.perform(self.arbiter.draining(name, client_id, client.owes, ends_at_ns, self.now_ns))

    @rule(delay_ns=DELAYS_NS)
    def wait(self, delay_ns: int) -> None:
        self.pass_time(self.now_ns + delay_ns)

    @rule(watched=st.booleans(), names=st.booleans())
    def watch(self, watched: bool, names: bool) -> None:
        self.watched, self.names = watched, names

    @rule(percent=st.sampled_from([0, 100, 100, 100, 1000]))
    def look_at_the_device(self, percent: int) -> None:
        self.see(self.busy_ns * percent // 100)

    @rule()
    def serve_all(self) -> None:
        """From here on all give back what has drained: each that waits now gets in, and what hangs for it goes on."""
        if self.served > 1:
            # Seconds of waiting take as long here: twice is enough for one example.
            return
        self.served, began_ns = self.served + 1, self.now_ns
        for _, _, client in self.known_clients():
            client.prompt = True
        for step_ns in (MS, 10 * MS, 100 * MS, S, 10 * S):
            if all(at_ns > began_ns or self.overstates(name) for name, (at_ns, _) in self.waits_from_ns.items()):
                return
            self.pass_time(self.now_ns + step_ns)

    @rule()
    def sleep_all(self) -> None:
        """Nobody has work any more, and all is given back: one need not look any more, or rarely."""
        for _, _, client in self.known_clients():
            client.busy, client.lie, client.prompt, client.hangs = False, HONEST, True, False
            client.queue_ns = min(client.queue_ns, MS)
        for _ in range(100):
            for found in self.known_clients():
                if found[2].owes and not found[2].queue_ns:
                    self.release(*found)
            if all(self.account(name).state is State.IDLE for name in self.allocations):
                break
            self.pass_time(self.now_ns + 300 * MS)
        else:
            raise AssertionError("somebody does not come to rest")
        self.pass_time(self.now_ns + 200 * MS)
        deadline_ns = self.arbiter.deadline_ns()
        for _ in range(15):
            if deadline_ns is None:
                return
            self.pass_time(deadline_ns)
            last_ns, deadline_ns = deadline_ns, self.arbiter.deadline_ns()
            assert deadline_ns is None or deadline_ns >= last_ns + RARELY_NS

    # What always holds.

    @invariant()
    def what_each_does_is_known(self) -> None:
        """Nothing is lost, also where one goes from turns to several and back."""
        self.read_all()
        for name, allocation in self.allocations.items():
            account = self.arbiter.account(name, self.now_ns)
            clients = allocation.clients.values()
            if name in self.open:
                assert account.state is State.HOLDING
                assert account.waiting_ns == 0 or not self.arbiter.beside, "who is in waits for nothing"
            elif any(client.owes for client in clients):
                assert account.state is State.DRAINING
            elif any(client.waits for client in clients):
                assert account.state is State.WAITING
            else:
                assert account.state is State.IDLE

    @invariant()
    def turns_are_exclusive(self) -> None:
        clients = [client for _, _, client in self.known_clients()]
        # Before it is turns all drain.
        alone = all(client.beside for client in clients) or not self.open
        assert not self.arbiter.beside or alone, "one of version 1 beside others"
        assert self.arbiter.beside or len(self.open) <= 1

    @invariant()
    def lags_add_up_to_nothing(self) -> None:
        self.read_all()
        lags = [self.arbiter.account(name, self.now_ns).lag_ns for name in self.allocations]
        if self.arbiter.beside:
            assert sum(lags) == 0
        else:
            assert abs(sum(lags)) <= len(lags) + 1

    @invariant()
    def what_was_held_adds_up(self) -> None:
        self.read_all()
        held_ns = sum(self.arbiter.account(name, self.now_ns).held_ns for name in self.allocations)
        assert held_ns <= min(self.now_ns, SETTINGS.window_ns) + self.held_twice_ns, (
            held_ns,
            self.now_ns,
            self.held_twice_ns,
        )


def test_the_arbiter_keeps_its_promises_whatever_happens(counts: Mapping[str, int]) -> None:
    most = counts["openings"]
    run_state_machine_as_test(OpeningsMachine, settings=hypothesis_settings(max_examples=most, stateful_step_count=40))
