"""Whatever clients do and write into their pages, the arbiter keeps to what it promises while it lets several in at
once, while it takes turns, and as it goes from one to the other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Check, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
NAMES = ("a", "b", "c", "d")
DELAYS_NS = st.sampled_from([1, 7 * US, 301 * US, 1 * MS, 5 * MS, 17 * MS, 80 * MS, 300 * MS])
PARTS = st.sampled_from([3, 20, 60, 100])
"""Of the time that its gate is open: how much a client uses. 100: it never pauses."""
STUCK_NS = 3600 * S
"""What is queued does not end."""
BURST_NS = 3 * MS
"""Of one that pauses: not as long as to be in anybody's way."""
WAIT_MOST_NS = SETTINGS.window_ns + SETTINGS.drain_grace_ns
RARELY_NS = 100 * MS
SLICE_MOST_NS = 2 * SETTINGS.slice_ns + MS
"""A turn of who hands over slowly, and how far its end is put off for another device's."""


@dataclass(frozen=True)
class Told:
    """What a client's page says since it was read last."""

    gpu_ns: int
    idle_ns: int
    undrained_ns: int
    waits: bool
    queued: bool
    running_ns: int = 0


Lie = Callable[[Told], Told]
LIES: dict[str, Lie] = {
    "none": lambda told: told,
    "never moves": lambda _: Told(0, 0, 0, waits=False, queued=False),
    "goes back": lambda told: Told(-told.gpu_ns - MS, -told.idle_ns, 0, told.waits, told.queued),
    "jumps": lambda told: Told(3600 * S, told.idle_ns, 3600 * S, told.waits, told.queued, 3600 * S),
    "feigns idle time": lambda told: Told(told.gpu_ns // 10, told.gpu_ns + told.idle_ns, 0, told.waits, queued=False),
    "feigns work": lambda told: Told(told.gpu_ns, 0, told.undrained_ns, waits=True, queued=True, running_ns=S),
}
HONEST, OVERSTATES = "none", "jumps"


@dataclass
class Client:
    """A program and its hook: what its gate shows, what it has queued, and what its page will say."""

    part: int
    lie: str
    beside: bool
    prompt: bool
    """It gives back what it owes as soon as it has drained; one that is not is stopped, as far as one can see."""
    hangs: bool = False
    """What it has queued when its gate is closed ends no more before a launch passes that is at the gate."""
    number: int = 0  # that its gate shows; 0: closed
    owes: int = 0  # the first number that it has not released
    seen: bool = False
    busy: bool = False  # it has work
    waits: bool = False  # a launch of it is at the closed gate, and it has said so
    queue_ns: int = 0  # GPU time that was queued before its gate was closed
    unsaid_ns: int = 0  # GPU time since it gave back a grant
    gpu_ns: int = 0  # since its page was read …
    idle_ns: int = 0
    undrained_ns: int = 0  # … but for this

    @property
    def queued(self) -> bool:
        return self.queue_ns > 0 or (self.number > 0 and self.busy and self.part == 100)

    def read(self) -> Told:
        undrained_ns = self.undrained_ns if self.queued else 0
        told = Told(self.gpu_ns, self.idle_ns, undrained_ns, self.waits, self.queued)
        self.gpu_ns = self.idle_ns = 0
        return LIES[self.lie](told)


@dataclass
class Allocation:
    share: Share
    clients: dict[int, Client] = field(default_factory=dict)
    heavy: bool = False  # as it was told when it was called back last
    ahead_ns: int = 0  # GPU time ahead of the limit's rate …
    excused_ns: int = 0  # … that was allowed by the limit before this one


Found = tuple[str, int, Client]


class OpeningsMachine(RuleBasedStateMachine):
    """Clients that keep to the protocol, that lie, hang or die, and allocations that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.arbiter = Arbiter(SETTINGS)
        self.now_ns = 0
        self.allocations: dict[str, Allocation] = {}
        self.open: set[str] = set()
        self.last = 0  # number of a grant
        self.next_client = 1
        self.watched = True  # the driver says each second how busy the device is
        self.seen_ns = self.busy_ns = 0
        self.held_twice_ns = 0  # of turns: time in which drains that are not waited for ran, too
        self.waits_from_ns: dict[str, tuple[int, int]] = {}  # and for how long at most
        self.turns = self.overlapping = self.served = 0
        self.trusted = True  # nobody has said so far that it used more than it did

    # The device.

    def run(self, until_ns: int) -> None:
        """Time passes, in which nothing happens: those that may run divide the device."""
        elapsed_ns = free_ns = until_ns - self.now_ns
        self.turns += 1
        # Short kernels come between the long ones of others; those take turns.
        known = sorted(self.known_clients(), key=lambda found: (found[2].part, (found[1] + self.turns) % 3))
        for name, _, client in known:
            if client.number and client.busy:
                gpu_ns = min(free_ns, elapsed_ns * client.part // 100)
                client.undrained_ns = client.undrained_ns + gpu_ns if client.part == 100 else gpu_ns % BURST_NS
            elif client.queue_ns < STUCK_NS:
                gpu_ns = min(free_ns, client.queue_ns)
                client.queue_ns -= gpu_ns
            else:
                gpu_ns = 0
            free_ns -= gpu_ns
            client.gpu_ns += gpu_ns
            client.unsaid_ns += gpu_ns
            if not client.waits and not client.queue_ns and not (client.busy and client.part == 100):
                client.idle_ns += elapsed_ns - gpu_ns
            self.allocations[name].ahead_ns += gpu_ns
        for allocation in self.allocations.values():
            leaves_ns = elapsed_ns * allocation.share.limit_percent // 100
            allocation.ahead_ns = max(0, allocation.ahead_ns - leaves_ns)
        self.busy_ns += elapsed_ns - free_ns
        self.held_twice_ns += self.overlapping * elapsed_ns
        self.now_ns = until_ns
        if self.trusted:
            self.check_limits()

    def check_limits(self) -> None:
        """In any time nobody uses more than its limit of that and of the burst, and what a slice and a drain hold."""
        for name, allocation in self.allocations.items():
            over_ns = allocation.ahead_ns - allocation.share.limit_percent * SETTINGS.limit_burst_ns // 100
            allocation.excused_ns = max(0, min(allocation.excused_ns, over_ns))
            assert over_ns <= allocation.excused_ns + SLICE_MOST_NS + SETTINGS.queue_cap_ns, f"{name} is over its limit"

    def pass_time(self, until_ns: int) -> None:
        """To a time, with a tick whenever one is due."""
        while True:
            events = [until_ns, *self.drain_ends_ns()]
            if self.watched:
                events.append(self.seen_ns + S)
            deadline_ns = self.arbiter.deadline_ns()
            if deadline_ns is not None:
                events.append(deadline_ns)
            self.run(max(self.now_ns, min(events)))
            self.drain()
            if self.watched and self.now_ns >= self.seen_ns + S:
                self.see(self.busy_ns)
            deadline_ns = self.arbiter.deadline_ns()
            if deadline_ns is not None and deadline_ns <= self.now_ns:
                self.read_all()
                self.perform(self.arbiter.tick(self.now_ns))
                after_ns = self.arbiter.deadline_ns()
                assert after_ns is None or after_ns > self.now_ns, "a tick must do what is due"
            self.check_waits()
            if self.now_ns >= until_ns:
                return

    def check_waits(self) -> None:
        """Whoever waits, and is not over its limit, gets in; later where it owes for what it says it had, and maybe
        never where it goes on saying that it has all of the device."""
        for name, (since_ns, most_ns) in self.waits_from_ns.items():
            assert self.overstates(name) or self.now_ns - since_ns <= most_ns, f"{name} waits for ever"

    def overstates(self, name: str) -> bool:
        return any(client.lie == OVERSTATES for client in self.allocations[name].clients.values())

    def drain_ends_ns(self) -> list[int]:
        return [self.now_ns + client.queue_ns for _, _, client in self.draining() if client.prompt and client.queue_ns]

    def drain(self) -> None:
        """Those that keep to the protocol give back what has drained."""
        for name, client_id, client in self.draining():
            if client.prompt and not client.queue_ns:
                self.release(name, client_id, client)
            elif client.queue_ns == STUCK_NS and not client.waits:
                self.request(name, client_id, client)

    # What the shell does.

    def read(self, name: str) -> None:
        allocation = self.allocations.get(name)
        if allocation is None:
            return
        use = Use(idle_ns=STUCK_NS)
        for client in allocation.clients.values():
            told = client.read()
            use.gpu_ns += told.gpu_ns
            use.idle_ns = min(use.idle_ns, told.idle_ns)
            use.waits |= told.waits
            use.queued |= told.queued
            use.undrained_ns += told.undrained_ns if told.queued else 0
            use.running_ns += told.running_ns if told.queued else 0
        if not allocation.clients:
            use.idle_ns = 0
        self.arbiter.read(name, use, self.now_ns)

    def read_all(self) -> None:
        """While several are let in, before each event."""
        if self.arbiter.beside:
            for name, allocation in self.allocations.items():
                if self.arbiter.rests(name):
                    self.check_rest(allocation)
                else:
                    self.read(name)

    def check_rest(self, allocation: Allocation) -> None:
        """Who is taken to rest would say nothing new."""
        clients = allocation.clients.values()
        if all(client.lie == HONEST for client in clients):
            assert any(client.waits for client in clients)
            assert not any(client.gpu_ns or client.queued for client in clients)

    def account(self, name: str) -> Account:
        self.read_all()
        return self.arbiter.account(name, self.now_ns)

    def perform(self, commands: list[Command]) -> None:
        beside, opened = self.arbiter.beside, set[str]()
        for command in commands:
            name = command.allocation_id
            allocation = self.allocations[name]
            match command:
                case Grant(_, number):
                    opened |= {name} - self.open
                    self.grant(name, allocation, number, beside)
                case Revoke():
                    assert name in self.open, "called back what is closed"
                    self.close(name, allocation, beside)
                case Prolong() | Contend():
                    assert name in self.open
        heavy = {name for name in self.allocations if self.is_heavy(name)}
        assert not opened & heavy or len(heavy) == 1 or not beside, "a heavy one was let in beside another"
        # What the arbiter answers is performed after what it said before.
        for command in commands:
            if isinstance(command, Check) and command.allocation_id in self.allocations:
                clients = self.allocations[command.allocation_id].clients
                stopped = [client_id for client_id, client in clients.items() if not client.prompt]
                self.read_all()
                self.perform(self.arbiter.stopped(command.allocation_id, stopped, self.now_ns))
        self.settle_down()

    def grant(self, name: str, allocation: Allocation, number: int, beside: bool) -> None:
        assert number == self.last + 1, "numbers rise by one"
        self.last = number
        anew = name not in self.open
        assert any(client.waits for client in allocation.clients.values()), "granted without work"
        assert not anew or beside or not self.open, "granted beside another, and it is turns"
        self.open.add(name)
        self.waits_from_ns.pop(name, None)
        for client in allocation.clients.values():
            if client.seen:
                client.number = number
                client.owes = number if anew else client.owes or number
                client.waits = False
                client.queue_ns = 0

    def close(self, name: str, allocation: Allocation, beside: bool) -> None:
        allocation.heavy = beside and self.is_heavy(name)
        self.open.discard(name)
        for client in allocation.clients.values():
            if client.number and client.busy and client.hangs:
                client.queue_ns = STUCK_NS
            elif client.number and client.busy and client.part == 100:
                client.queue_ns = SETTINGS.queue_cap_ns
            client.number = 0

    def is_heavy(self, name: str) -> bool:
        """Whether it leaves no gaps, as its clients were told, and is in or draining."""
        allocation = self.allocations[name]
        if allocation.share.latency:
            return False
        if name in self.open:
            return self.arbiter.queue_of(name)[0]
        account = self.arbiter.account(name, self.now_ns)
        if account.state is not State.DRAINING or account.overlapping:
            return False
        owing = [client for client in allocation.clients.values() if client.owes]
        return allocation.heavy and any(client.queue_ns > 0 and client.lie == HONEST for client in owing)

    def settle_down(self) -> None:
        """After an event: whose gates are closed without a word, and whose drain was given up."""
        self.read_all()
        self.overlapping = 0
        for name, allocation in self.allocations.items():
            account = self.arbiter.account(name, self.now_ns)
            owes = any(client.owes for client in allocation.clients.values())
            if not owes:
                self.open.discard(name)
            elif name not in self.open and account.state is State.WAITING:
                # A launch waits at the gate of one whose drain was given up: it owes nothing any more.
                for client in allocation.clients.values():
                    client.owes = 0
            waits = any(client.waits for client in allocation.clients.values())
            if waits and name not in self.open and not account.throttled:
                owes_ns = max(0, -account.lag_ns) * 100 // allocation.share.request_percent
                since_ns, most_ns = self.waits_from_ns.get(name, (self.now_ns, 0))
                self.waits_from_ns[name] = since_ns, max(most_ns, WAIT_MOST_NS + owes_ns)
            else:
                self.waits_from_ns.pop(name, None)
            self.overlapping += account.overlapping and not self.arbiter.beside

    # What clients do.

    def request(self, name: str, client_id: int, client: Client) -> None:
        client.seen = True
        if not client.number:
            client.waits = True
        self.read_all() if self.arbiter.beside else self.read(name)
        self.perform(self.arbiter.request(name, client_id, self.now_ns))

    def release(self, name: str, client_id: int, client: Client, *, gpu_ns: int | None = None) -> None:
        number = client.number or client.owes
        client.owes = client.number = client.queue_ns = client.undrained_ns = 0
        follows = client.busy
        client.waits = client.waits or follows
        if not any(each.owes for each in self.allocations[name].clients.values()):
            self.open.discard(name)
        told_ns, client.unsaid_ns = client.unsaid_ns if gpu_ns is None else gpu_ns, 0
        self.read_all() if self.arbiter.beside else self.read(name)
        self.perform(self.arbiter.release(name, client_id, number, told_ns, follows, self.now_ns))

    # What can happen.

    @initialize(
        parts=st.lists(PARTS, min_size=2, max_size=4),
        shares=st.lists(st.integers(5, 25), min_size=4, max_size=4),
        limits=st.lists(st.sampled_from([10, 25, 100, 100]), min_size=4, max_size=4),
        mixed=st.booleans(),
    )
    def begin(self, parts: list[int], shares: list[int], limits: list[int], mixed: bool) -> None:
        """Some programs are there, and have been running for a while."""
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

    @rule(watched=st.booleans())
    def watch(self, watched: bool) -> None:
        self.watched = watched

    @rule(percent=st.sampled_from([0, 100, 100, 100, 1000]))
    def look_at_the_device(self, percent: int) -> None:
        self.see(self.busy_ns * percent // 100)

    def see(self, busy_ns: int) -> None:
        for name in self.allocations:
            self.read(name)
        self.busy_ns, self.seen_ns = 0, self.now_ns
        self.perform(self.arbiter.see(busy_ns, self.now_ns))

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

    # What is known.

    def known_clients(self) -> list[Found]:
        return [
            (name, client_id, client)
            for name, allocation in self.allocations.items()
            for client_id, client in allocation.clients.items()
        ]

    def draining(self) -> list[Found]:
        """The clients that have yet to give back a grant that was called back."""
        return [found for found in self.known_clients() if found[2].owes and not found[2].number]

    def draw_client(self, data: st.DataObject, *, owing: bool = False) -> Found | None:
        """Any; ``owing``: one that has yet to give back a grant that was called back."""
        found = self.draining() if owing else self.known_clients()
        known = {(name, client_id): client for name, client_id, client in found}
        if not known:
            return None
        name, client_id = data.draw(st.sampled_from(list(known)))
        return name, client_id, known[name, client_id]

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
