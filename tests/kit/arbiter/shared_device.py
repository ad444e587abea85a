"""A device that several clients share, with what their pages say of it: true, or a lie."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis.stateful import RuleBasedStateMachine

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.settings import Settings, Share

SETTINGS = Settings()
STUCK_NS = 3600 * S
"""What is queued does not end."""
BURST_NS = 3 * MS
"""Of one that pauses: not as long as to be in anybody's way."""
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
    lies: bool = False
    """It says what no page of a hook does."""


Lie = Callable[[Told], Told]
LIES: dict[str, Lie] = {
    "none": lambda told: told,
    "never moves": lambda _: Told(0, 0, 0, waits=False, queued=False),
    "goes back": lambda told: Told(-told.gpu_ns - MS, -told.idle_ns, 0, told.waits, told.queued, lies=True),
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
        """Whether it has something at the device, or will at once."""
        return self.queue_ns > 0 or (self.number > 0 and self.busy and self.part == 100)

    def read(self) -> Told:
        """What the page says when it is read; it begins anew."""
        undrained_ns = self.undrained_ns if self.queued else 0
        told = Told(self.gpu_ns, self.idle_ns, undrained_ns, self.waits, self.queued)
        self.gpu_ns = self.idle_ns = 0
        return LIES[self.lie](told)


@dataclass
class Allocation:
    """An allocation's clients, and what it used ahead of its limit."""

    share: Share
    clients: dict[int, Client] = field(default_factory=dict)
    heavy: bool = False  # as it was told when it was called back last
    ahead_ns: int = 0  # GPU time ahead of the limit's rate …
    excused_ns: int = 0  # … that was allowed by the limit before this one
    used_ns: int = 0  # since the driver was asked last


Found = tuple[str, int, Client]


class SharedDevice(RuleBasedStateMachine):
    """Allocations and their clients, those of which that may run divide the device."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.allocations: dict[str, Allocation] = {}
        self.held_twice_ns = 0  # of turns: time in which drains that are not waited for ran, too
        self.trusted = True  # nobody has said so far that it used more than it did
        self.busy_ns = 0
        self.turns = self.overlapping = 0

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
            self.allocations[name].used_ns += gpu_ns
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

    def drain_ends_ns(self) -> list[int]:
        """When each has drained that gives back what it owes."""
        return [self.now_ns + client.queue_ns for _, _, client in self.draining() if client.prompt and client.queue_ns]

    def known_clients(self) -> list[Found]:
        """All, with their allocations."""
        return [
            (name, client_id, client)
            for name, allocation in self.allocations.items()
            for client_id, client in allocation.clients.items()
        ]

    def draining(self) -> list[Found]:
        """The clients that have yet to give back a grant that was called back."""
        return [found for found in self.known_clients() if found[2].owes and not found[2].number]
