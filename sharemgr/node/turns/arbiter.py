"""Grants one device: a state machine of what happened and when, which answers with commands. It takes exclusive turns
(slices.py), or lets several in at once where one of them leaves gaps (openings.py). All drain before it goes from
several to turns, and who drains a turn does so before others are let in.

What a client must keep to, so that the arbiter knows who has drained:

- It says REQUEST when a launch finds the gate closed, and before its very first launch even where it is open.
- From its first REQUEST on, every grant of its allocation opens its gate, and it owes one RELEASE for it: when it was
  revoked and has drained (at once, if it launched nothing), or before because it has been idle. From then on it takes
  its gate as closed until the gate shows another number than the one it released.
- A launch that waits at the gate for long because what was queued before does not drain says REQUEST, too: what is
  queued may be waiting for it.
- A RELEASE that says FOLLOWS is as good as a RELEASE and a REQUEST.

Numbers of grants rise by one. A release or a report of usage with a number that is not of the grant that lasts is
ignored, and so is what comes from a client that is not there: both may have crossed with a command. Of a drain that was
waited for no more a release is heard until the next grant: how long it took, and the GPU time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from edgeshare.contract.errors import AlreadyExists, NotFound
from edgeshare.contract.units import NS_PER_S
from sharemgr.node.turns.beside.openings import Openings
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.commands import Begin, Check, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.turns.contender import Client, Contender
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.grants import MAX_NUMBER, Grants, Numbers
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.phases import DRAINING, ENDING, HOLDING, IDLE, OVERLAPPING, THINKING, THROTTLED, WAITING
from sharemgr.node.turns.policy import Settings, Share
from sharemgr.node.turns.slices.ends import Ends
from sharemgr.node.turns.slices.slices import Slices

__all__ = [
    "Account",
    "Arbiter",
    "Begin",
    "Check",
    "Command",
    "Contend",
    "Grant",
    "Prolong",
    "Revoke",
    "Rule",
    "Settings",
    "Share",
    "State",
]


class State(Enum):
    """What an allocation does, as its users are told."""

    IDLE = "idle"
    WAITING = "waiting"
    HOLDING = "holding"
    DRAINING = "draining"


_STATES = {
    IDLE: State.IDLE,
    THINKING: State.IDLE,
    THROTTLED: State.WAITING,
    WAITING: State.WAITING,
    HOLDING: State.HOLDING,
    DRAINING: State.DRAINING,
    ENDING: State.DRAINING,
    OVERLAPPING: State.DRAINING,
}


@dataclass(frozen=True, slots=True)
class Account:
    """What an allocation has had of the device; sums are of the last `window_ns` of the settings."""

    state: State
    overlapping: bool
    """It did not drain in time; another may hold the device now."""
    throttled: bool
    """It waits because it is over its limit."""
    held_ns: int
    gpu_ns: int
    waited_ns: int
    """In all of the window, the present wait included."""
    waiting_ns: int
    """How long it has been waiting now."""
    longest_wait_ns: int
    grants: int
    """Since it was added."""
    overruns: int
    """Drains that were not waited for to their end, since it was added."""
    holding_ns: int
    """How long it has had the device now, its drain included; 0 while it has not."""
    beside: bool
    """Others may be let in beside it; what it held is then what it was charged with."""
    usual_part: float
    """Of the device, what it uses as a rule while it may as it likes; 0 where it is turns."""
    lag_ns: int
    """Held time that it is behind (above 0) or ahead of (below 0) its part, while it competes; 0 otherwise."""


@dataclass(slots=True)
class Use:
    """What the pages of an allocation's clients say."""

    gpu_ns: int = 0
    """Since they were read last, by learned costs."""
    idle_ns: int = 0
    """The same: with nothing queued, and no launch at the gate."""
    undrained_ns: int = 0
    """GPU time since nothing was queued, by the counters."""
    waits: bool = False
    """A launch is at the closed gate."""
    queued: bool = False
    """Something that was launched has not ended …"""
    running_ns: int = 0
    """… of which so much may have run already, and is in no counter yet."""
    unheard_ns: int = 0
    """GPU time that is in the counters, and that no record has told of."""


SEEN_NS = 4 * NS_PER_S
"""For so long one goes by the driver's last word on how busy the device was; it is asked each second."""


LEAST_TURNS_NS = NS_PER_S // 10
"""So long it is turns at least: twenty slices. To go to them and back costs as much as a few hand-overs."""


class Arbiter:
    """The arbiter of one device. Times are integer ns; an event's time is never before the last one's."""

    def __init__(self, settings: Settings | None = None, ends: Ends | None = None, rule: Rule | None = None) -> None:
        """``ends`` is what the arbiters of one node have in common."""
        self._settings = settings or Settings()
        self._hand_overs = HandOvers(self._settings)
        numbers = Numbers()
        self._slices = Slices(self._settings, ends or Ends(), numbers, self._hand_overs)
        self._gates = Gates(self._settings, rule or Rule(), 0)
        self._openings = Openings(self._settings, self._gates, numbers, self._hand_overs)
        self._grants: Grants = self._slices
        self.beside = False
        """Whether several are let in at once."""
        self._turns_until_ns = 0  # it is turns until then at least
        self._watched = False  # there was a client when one last saw how busy the device was
        self._may_until_ns = 0  # until then one knows enough of the device to let several in
        self._alone_clients = 0  # how many cannot be let in beside others
        self._contenders: dict[str, Contender] = {}

    def add(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Adds an allocation without clients. Raises AlreadyExists."""
        if allocation_id in self._contenders:
            raise AlreadyExists(f"allocation {allocation_id} is on this device already: remove it first")
        contender = self._contenders[allocation_id] = Contender(allocation_id, share, self._settings, now_ns)
        if self.beside:
            self._grants.settle(now_ns)
            self._openings.add(contender)
        return []

    def update(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Changes an allocation's share; what it used and owes stays. Raises NotFound."""
        contender = self._known(allocation_id)
        self._grants.settle(now_ns)
        if contender.clients:
            self._slices.field.rivals.latency_present += share.latency - contender.latency
        contender.latency = share.latency
        contender.change_limit(share.limit_percent, now_ns)
        self._slices.field.competition.change_request(contender, share.request_percent)
        if contender.phase is THROTTLED:
            self._grants.ready(contender)
        self._grants.signal()
        return self._take(now_ns)

    def remove(self, allocation_id: str, now_ns: int) -> list[Command]:
        """Removes an allocation and its clients; one that is not there is removed already."""
        contender = self._contenders.pop(allocation_id, None)
        if contender is None:
            return []
        self._grants.settle(now_ns)
        self._grants.close(contender)
        for client_id in list(contender.clients):
            self._take_out(contender, client_id, now_ns)
        self._slices.field.forget(contender)
        self._hand_overs.forget(contender)
        if self.beside:
            self._openings.remove(contender)
        return self._take(now_ns)

    def join(self, allocation_id: str, client_id: int, now_ns: int, beside: bool = False) -> list[Command]:
        """Adds a client to an allocation; ``beside``: it can be let in beside others, and its pages say what it uses.
        Raises NotFound, AlreadyExists."""
        contender = self._known(allocation_id)
        if client_id in contender.clients:
            raise AlreadyExists(f"client {client_id} of allocation {allocation_id} is here already")
        self._grants.settle(now_ns)
        if contender.latency and not contender.clients:
            self._slices.field.rivals.latency_present += 1
        contender.clients[client_id] = Client(beside)
        self._alone_clients += not beside
        self._grants.signal()
        return self._take(now_ns)

    def gone(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """Takes out a client that left or died; what it held is free at once."""
        contender = self._contenders.get(allocation_id)
        if contender is None or client_id not in contender.clients:
            return []
        self._grants.settle(now_ns)
        self._take_out(contender, client_id, now_ns)
        return self._take(now_ns)

    def request(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """A launch of the client waits at the closed gate."""
        contender = self._contenders.get(allocation_id)
        client = contender.clients.get(client_id) if contender is not None else None
        if contender is None or client is None:
            return []
        self._grants.settle(now_ns)
        client.seen = True
        if contender.phase is HOLDING and client.opened:
            contender.ask(client)
            return []
        contender.want(client)
        if contender.phase is HOLDING:
            if not contender.exclusive:
                self._grants.admit(contender)
        elif contender.phase is OVERLAPPING:
            self._grants.compete_again(contender)
        elif contender.phase is IDLE or contender.phase is THINKING:
            if contender.drained_ns >= 0:
                contender.learn_think(now_ns - contender.drained_ns, self._hand_overs.anticipation_ns)
                contender.drained_ns = -1
            self._grants.ready(contender)
            self._grants.woke(contender)
        return self._take(now_ns)

    def release(
        self, allocation_id: str, client_id: int, number: int, gpu_ns: int, follows: bool, now_ns: int
    ) -> list[Command]:
        """The client has drained; `follows`: a launch waits already. GPU time is that since its last report."""
        contender = self._contenders.get(allocation_id)
        client = contender.clients.get(client_id) if contender is not None else None
        if contender is None or client is None:
            return []
        if number and client.given_up == number:
            self._grants.settle(now_ns)
            self._grants.report(contender, client, gpu_ns, now_ns)
            self._grants.drained_late(contender, client)
            return self.request(allocation_id, client_id, now_ns) if follows else []
        if not _is_current(contender, client, number):
            return []
        self._grants.settle(now_ns)
        self._grants.report(contender, client, gpu_ns, now_ns)
        contender.close(client)
        if follows:
            contender.want(client)
        self._grants.released(contender, returns=True)
        return self._take(now_ns)

    def draining(self, allocation_id: str, client_id: int, number: int, ends_at_ns: int, now_ns: int) -> list[Command]:
        """The client says when what it queued under a grant that was called back will have drained."""
        contender = self._contenders.get(allocation_id)
        client = contender.clients.get(client_id) if contender is not None else None
        if contender is None or client is None or not _is_current(contender, client, number):
            return []
        if contender.phase is not DRAINING and contender.phase is not ENDING:
            # Foretold of a grant that goes on, it would be wrong by the time of the revoke.
            return []
        self._grants.settle(now_ns)
        client.ends_at_ns = ends_at_ns
        self._grants.foresees(contender)
        return self._take(now_ns)

    def stopped(self, allocation_id: str, client_ids: Collection[int], now_ns: int) -> list[Command]:
        """The answer to a Check: the processes of these clients are stopped."""
        contender = self._contenders.get(allocation_id)
        if contender is None:
            return []
        self._grants.settle(now_ns)
        self._grants.stopped(contender, client_ids)
        return self._take(now_ns)

    def usage(self, allocation_id: str, client_id: int, number: int, gpu_ns: int, now_ns: int) -> list[Command]:
        """GPU time of the client since its last report, while its grant lasts."""
        contender = self._contenders.get(allocation_id)
        client = contender.clients.get(client_id) if contender is not None else None
        if contender is not None and client is not None and _is_current(contender, client, number):
            self._grants.report(contender, client, gpu_ns, now_ns)
        return []

    def hand_over(self, allocation_id: str, hand_over_ns: int) -> None:
        """A client says how long it usually takes from the device's falling free to its own work's begin."""
        contender = self._contenders.get(allocation_id)
        if contender is not None:
            self._hand_overs.tell(contender, hand_over_ns)

    def tick(self, now_ns: int) -> list[Command]:
        """Does what is due. Being called early is harmless."""
        self._grants.settle(now_ns)
        self._grants.tick()
        return self._take(now_ns)

    def read(self, allocation_id: str, use: Use, now_ns: int) -> None:
        """Takes in what the pages of an allocation's clients say at the time of the event that follows."""
        contender = self._contenders[allocation_id]
        contender.gate.demand.read(
            use.gpu_ns, use.idle_ns, use.undrained_ns, use.waits, use.queued, use.running_ns, now_ns=now_ns
        )
        contender.paged_ns = use.unheard_ns
        contender.rests = use.waits and not use.queued and use.gpu_ns == 0 and use.unheard_ns == 0
        if not self.beside:
            self._gates.report(contender.gate, now_ns)

    def rests(self, allocation_id: str) -> bool:
        """Whether the pages of an allocation's clients say what they said when they were read last: all of them are
        kept out, and nothing of theirs is queued."""
        contender = self._contenders[allocation_id]
        return contender.rests and (contender.phase is WAITING or contender.phase is THROTTLED)

    @property
    def reads_all(self) -> bool:
        """Whether the pages of all are to be read before an event, not only of those that it is of: several are let in,
        or may be from now on."""
        return self.beside or any(each.gate.demand.seen_to_leave_gaps for each in self._contenders.values())

    def see(self, busy_ns: int, now_ns: int) -> list[Command]:
        """How long the device was busy since this was last called, as its driver says. While nobody was there, that was
        others' work, which nobody is to be blamed for."""
        self._grants.settle(now_ns)
        self._may_until_ns = now_ns + SEEN_NS
        watched, self._watched = self._watched, any(each.clients for each in self._contenders.values())
        if not watched:
            busy_ns = 0
        pending_ns = max((each.gate.demand.running_ns for each in self._contenders.values()), default=0)
        self._gates.see(busy_ns, pending_ns, now_ns)
        return self._take(now_ns)

    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest, unless something happens before; None: never."""
        return self._grants.deadline_ns()

    def queue_of(self, allocation_id: str) -> tuple[bool, int]:
        """What the clients of an allocation are told while several are let in: whether they say so as soon as they have
        drained, and their queue's cap in ns."""
        contender = self._contenders[allocation_id]
        return contender.told_tells, contender.told_cap_ns

    def device_free_ns(self) -> int:
        """When what was queued before the present grant is done, as far as is known."""
        return self._slices.device_free_ns()

    def slice_end_ns(self) -> int:
        """Before when the present grant will not be called back; 0 where it may be at any time."""
        return 0 if self.beside else self._slices.known_end_ns()

    def holds(self, allocation_id: str, client_id: int) -> bool:
        """Whether a client owes a release: of an exclusive device, whether it is the one that has it."""
        contender = self._contenders.get(allocation_id)
        client = contender.clients.get(client_id) if contender is not None else None
        return client is not None and client.opened > 0

    def waiting(self) -> list[str]:
        """The allocations that wait for a slice."""
        return [each.id for each in self._contenders.values() if each.phase is WAITING or each.wanting_clients]

    def ending(self) -> str | None:
        """The allocation whose successor is granted already while it drains."""
        return self._openings.ending() if self.beside else self._slices.ending()

    def turn_end_ns(self) -> int:
        """When the present slice ends."""
        return self._slices.field.slice_end_ns

    def account(self, allocation_id: str, now_ns: int) -> Account:
        """What the allocation has had. Raises NotFound."""
        contender = self._known(allocation_id)
        self._grants.settle(now_ns)
        self._grants.note_held(contender)
        sums = contender.window.sums(now_ns)
        waiting_ns = contender.waiting_ns(now_ns)
        return Account(
            state=_STATES[contender.phase],
            overlapping=contender.phase is OVERLAPPING,
            throttled=contender.phase is THROTTLED,
            held_ns=sums.held_ns,
            gpu_ns=sums.gpu_ns,
            waited_ns=sums.waited_ns + contender.window.inside_ns(waiting_ns),
            waiting_ns=waiting_ns,
            longest_wait_ns=max(sums.longest_wait_ns, waiting_ns),
            grants=contender.grants,
            overruns=contender.overruns,
            # A grant may be of a time to come.
            holding_ns=max(0, now_ns - contender.granted_ns) if contender.open_clients else 0,
            beside=self.beside,
            usual_part=contender.gate.demand.usual if self.beside else 0,
            lag_ns=self._grants.lag_ns(contender),
        )

    def _take(self, now_ns: int) -> list[Command]:
        """Takes turns, or lets several in, as pays; and returns what is to be done."""
        if self.beside:
            if self._openings.closing or not self._openings.pays or not self._may_share(now_ns):
                drained = self._openings.close_all()
                return self._take_turns(now_ns) if drained else self._openings.give_commands()
        elif self._gates.in_turns:
            self._gates.rest(now_ns)
        elif self._shares(now_ns):
            return self._let_in(now_ns)
        return self._grants.take()

    def _shares(self, now_ns: int) -> bool:
        """Whether there is one that leaves gaps, and another that has work."""
        working, gaps = 0, False
        for contender in self._contenders.values():
            if contender.active:
                working += 1
                gaps = gaps or contender.gate.demand.seen_to_leave_gaps
        return working > 1 and gaps and now_ns >= self._turns_until_ns and self._may_share(now_ns)

    def _may_share(self, now_ns: int) -> bool:
        """Whether one would see a lie, and each client can be let in beside others."""
        return not self._settings.exclusive and now_ns < self._may_until_ns and not self._alone_clients

    def _let_in(self, now_ns: int) -> list[Command]:
        contenders = list(self._contenders.values())
        self._slices.end(contenders, now_ns)
        commands = self._slices.give_commands()
        self._openings.begin(contenders, now_ns)
        self._grants, self.beside = self._openings, True
        return commands + self._grants.take()

    def _take_turns(self, now_ns: int) -> list[Command]:
        self._openings.end()
        self._gates.end(now_ns)
        commands = self._openings.give_commands()
        self._slices.begin(self._contenders.values(), now_ns)
        self._grants, self.beside = self._slices, False
        self._turns_until_ns = now_ns + LEAST_TURNS_NS
        return commands + self._grants.take()

    def _take_out(self, contender: Contender, client_id: int, now_ns: int) -> None:
        client = contender.clients.pop(client_id)
        self._alone_clients -= not client.beside
        contender.unwant(client)
        if client.opened:
            # It can report no more. What it did since it last did counts in full: dying is no way round a limit.
            self._grants.report(contender, client, now_ns - client.reported_ns, now_ns)
            contender.close(client)
            self._grants.released(contender, returns=False)
        elif contender.phase is THINKING:
            if not contender.clients:
                self._grants.sleep(contender)
        elif contender.phase in (WAITING, THROTTLED) and not contender.wanting_clients:
            self._grants.sleep(contender)
        if contender.latency and not contender.clients:
            self._slices.field.rivals.latency_present -= 1
            self._grants.signal()

    def _known(self, allocation_id: str) -> Contender:
        contender = self._contenders.get(allocation_id)
        if contender is None:
            raise NotFound(f"allocation {allocation_id} is not on this device: add it first")
        return contender


def _is_current(contender: Contender, client: Client, number: int) -> bool:
    """Whether the number is of the grant that the client owes a release for, or of a later one of the same hold."""
    if number == client.opened:
        return number > 0
    if not client.opened or not 0 < number <= MAX_NUMBER:
        return False
    return (number - client.opened) % MAX_NUMBER <= (contender.number - client.opened) % MAX_NUMBER
