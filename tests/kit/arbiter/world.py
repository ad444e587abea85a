"""Clients of one device and its arbiter, whose every command is held to what it promises."""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from edgeshare.contract.units import NS_PER_MS as MS
from sharemgr.node.turns.account import State
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Begin, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
NAMES = ("a", "b", "c", "d")


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
    """An allocation's clients, and what it may have by its limit."""

    share: Share
    clients: dict[int, SimulatedClient] = field(default_factory=dict)
    granted_ns: int = 0
    gpu_ns: int = 0  # as the arbiter must believe it, of this grant
    bucket_ns: int = 0  # GPU time ahead of the limit's rate
    bucket_at_ns: int = 0


class ArbiterWorld(RuleBasedStateMachine):
    """The world of a state machine: what each client's gate shows, and what it has yet to give back."""

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

    def perform(self, commands: list[Command]) -> None:
        """Does as the arbiter says; each command is one that it may give now."""
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
        holder = self.holder
        if holder is not None and not any(client.owes for client in self.allocations[holder].clients.values()):
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
        """What a client says of its GPU time, as far as it must be believed."""
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

    def let_release(self, name: str, client_id: int, client: SimulatedClient, *, follows: bool, gpu_ns: int) -> None:
        """A client gives back what it owes."""
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

    def draining(self) -> list[tuple[str, int, SimulatedClient]]:
        """The clients that have yet to give back a grant that was called back."""
        return [found for found in self.known_clients() if found[2].owes and not found[2].number]

    def known_clients(self) -> list[tuple[str, int, SimulatedClient]]:
        """All, with their allocations."""
        return [
            (name, client_id, client)
            for name, allocation in self.allocations.items()
            for client_id, client in allocation.clients.items()
        ]

    def draw_client(self, data: st.DataObject) -> tuple[str, int, SimulatedClient] | None:
        """Any, if there is one."""
        known = self.known_clients()
        return data.draw(st.sampled_from(known)) if known else None
