"""A shared device, its arbiter, and the shell between it and the clients; each command is held to what is promised."""

from hypothesis import strategies as st

from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.account import Account, State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Check, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.demand import Use
from tests.kit.arbiter.shared_device import (
    HONEST,
    OVERSTATES,
    SETTINGS,
    STUCK_NS,
    Allocation,
    Client,
    Found,
    SharedDevice,
)

WAIT_MOST_NS = SETTINGS.window_ns + SETTINGS.drain_grace_ns


class OpeningsWorld(SharedDevice):
    """The world of a state machine where several are let in at once, or take turns."""

    def __init__(self) -> None:
        super().__init__()
        self.arbiter = Arbiter(SETTINGS)
        self.open: set[str] = set()
        self.last = 0  # number of a grant
        self.next_client = 1
        self.watched = True  # the driver says each second how busy the device is …
        self.names = False  # … and what of that each allocation used
        self.seen_ns = 0
        self.waits_from_ns: dict[str, tuple[int, int]] = {}  # and for how long at most
        self.served = 0

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
        """Whether one of its clients says that it has all of the device."""
        return any(client.lie == OVERSTATES for client in self.allocations[name].clients.values())

    def drain(self) -> None:
        """Those that keep to the protocol give back what has drained."""
        for name, client_id, client in self.draining():
            if client.prompt and not client.queue_ns:
                self.release(name, client_id, client)
            elif client.queue_ns == STUCK_NS and not client.waits:
                self.request(name, client_id, client)

    def read(self, name: str) -> None:
        """Takes in what the pages of an allocation's clients say."""
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
            use.lies |= told.lies
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
        """What the arbiter knows of an allocation, once all pages are read."""
        self.read_all()
        return self.arbiter.account(name, self.now_ns)

    def perform(self, commands: list[Command]) -> None:
        """Does as the arbiter says; each command is one that it may give now."""
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
        """Opens the gates of an allocation's clients."""
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
        """Closes them: what was queued goes on, or hangs."""
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

    def request(self, name: str, client_id: int, client: Client) -> None:
        """A client asks, whether it has work or not."""
        client.seen = True
        if not client.number:
            client.waits = True
        self.read_all() if self.arbiter.beside else self.read(name)
        self.perform(self.arbiter.request(name, client_id, self.now_ns))

    def release(self, name: str, client_id: int, client: Client, *, gpu_ns: int | None = None) -> None:
        """A client gives back what it owes; `gpu_ns` is what it says that it used, if it is not the truth."""
        number = client.number or client.owes
        client.owes = client.number = client.queue_ns = client.undrained_ns = 0
        follows = client.busy
        client.waits = client.waits or follows
        if not any(each.owes for each in self.allocations[name].clients.values()):
            self.open.discard(name)
        told_ns, client.unsaid_ns = client.unsaid_ns if gpu_ns is None else gpu_ns, 0
        self.read_all() if self.arbiter.beside else self.read(name)
        self.perform(self.arbiter.release(name, client_id, number, told_ns, follows, self.now_ns))

    def see(self, busy_ns: int) -> None:
        """The driver says how busy the device was since it was asked last."""
        for name in self.allocations:
            self.read(name)
        self.busy_ns, self.seen_ns = 0, self.now_ns
        used_ns = {name: allocation.used_ns for name, allocation in self.allocations.items()}
        for allocation in self.allocations.values():
            allocation.used_ns = 0
        self.perform(self.arbiter.see(busy_ns, self.now_ns, used_ns if self.names else None))

    def draw_client(self, data: st.DataObject, *, owing: bool = False) -> Found | None:
        """Any; ``owing``: one that has yet to give back a grant that was called back."""
        found = self.draining() if owing else self.known_clients()
        known = {(name, client_id): client for name, client_id, client in found}
        if not known:
            return None
        name, client_id = data.draw(st.sampled_from(list(known)))
        return name, client_id, known[name, client_id]
