"""Grants the slices of one device: a state machine of what happened and when, that answers with commands.

What a client must keep to, so that the arbiter knows who has drained:
- It says REQUEST when a launch finds the gate closed, and before its very first launch even if the gate is open.
- From its first REQUEST on, each grant of its allocation opens its gate, and it owes one RELEASE for it: when it was
  revoked and has drained (at once, if it launched nothing), or earlier because it is idle. It regards its gate as closed
  from then on, until the gate shows a number after the one it released.
- A release that says FOLLOWS is as good as a REQUEST.

Numbers of grants rise by one and wrap round within what the gate's word can carry; a release or a report of usage with
another number than those of the grant that lasts is ignored, and so is every event of an allocation or a client that
is not there: both may cross with a command on the way.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush

from edgeshare.errors import AlreadyExists, NotFound
from sharemgr.node.contender import OPEN, Client, Contender, Phase
from sharemgr.node.policy import Competition, Settings, Share

__all__ = ["Account", "Arbiter", "Command", "Contend", "Grant", "Revoke", "Settings", "Share", "State"]

MAX_NUMBER = (1 << 30) - 1
"""The gate's word is 32 bits, two of which are flags (cuda_hook/wire.h)."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Open the gates of all clients of the allocation. It may already hold: then another of its clients came in."""

    allocation_id: str
    number: int
    contended: bool


@dataclass(frozen=True, slots=True)
class Contend:
    """The allocation goes on holding, but the contended bit of its grant changes."""

    allocation_id: str
    number: int
    contended: bool


@dataclass(frozen=True, slots=True)
class Revoke:
    """Close the gates of all clients of the allocation."""

    allocation_id: str
    number: int


Command = Grant | Contend | Revoke


class State(Enum):
    """What an allocation does, as its users are told."""

    IDLE = "idle"
    WAITING = "waiting"
    HOLDING = "holding"
    DRAINING = "draining"


_STATES = {
    Phase.IDLE: State.IDLE,
    Phase.THINKING: State.IDLE,
    Phase.THROTTLED: State.WAITING,
    Phase.WAITING: State.WAITING,
    Phase.HOLDING: State.HOLDING,
    Phase.DRAINING: State.DRAINING,
    Phase.OVERLAPPING: State.DRAINING,
}


@dataclass(frozen=True, slots=True)
class Account:
    """What an allocation has had of the device. Sums are of the last window_ns of Settings."""

    state: State
    overlapping: bool
    """It did not drain in time; another may hold the device now."""
    throttled: bool
    """It waits because it is over its limit."""
    held_ns: int
    gpu_ns: int
    waiting_ns: int
    """How long it has been waiting now."""
    longest_wait_ns: int
    grants: int
    """Since it was added."""
    lag_ns: int
    """Held time that it is behind (above 0) or ahead of (below 0) its part, while it competes; 0 otherwise."""


class Arbiter:
    """The arbiter of one device. Every `now_ns` is at least the one before; times are integer ns."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._competition = Competition(self._settings)
        self._all: dict[str, Contender] = {}
        self._contenders: dict[Contender, None] = {}  # WAITING or THINKING, in the order of their coming
        self._waiting = 0  # how many of these are WAITING
        self._busy = 0  # how many are not IDLE
        self._latency = 0  # how many of the latency class have clients
        self._overlapping: list[Contender] = []
        self._occupant: Contender | None = None  # has the device: HOLDING, DRAINING, or THINKING and waited for
        self._contended = False  # as the holder was told
        self._turn: Contender | None = None  # whose turn the current or the last slice is
        self._slice_end_ns = 0
        self._settled_ns = 0  # charged up to here
        self._number = 0
        self._timers: list[tuple[int, int, Contender]] = []  # a heap; entries that no longer hold are left in it
        self._timers_set = 0
        self._left: tuple[Contender | None, int, int] = (None, -1, -1)  # who became idle last; when; when another did

    # What happens to allocations and clients.

    def add(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Adds an allocation without clients. Raises AlreadyExists."""
        if allocation_id in self._all:
            raise AlreadyExists(f"allocation {allocation_id} is on this device already: remove it first")
        self._all[allocation_id] = Contender(allocation_id, share, self._settings, now_ns)
        return []

    def update(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Changes an allocation's share; what it used and owes stays. Raises NotFound."""
        contender = self._known(allocation_id)
        out: list[Command] = []
        self._settle(now_ns)
        if contender.clients:
            self._latency += share.latency - contender.latency
        contender.latency = share.latency
        contender.change_limit(share.limit_percent, now_ns)
        self._competition.change_request(contender, share.request_percent)
        if contender.phase is Phase.THROTTLED:
            self._ready(contender, now_ns, out)
        self._signal(now_ns, out)
        self._dispatch(now_ns, out)
        return out

    def remove(self, allocation_id: str, now_ns: int) -> list[Command]:
        """Removes an allocation and its clients; one that is not there is removed already."""
        contender = self._all.get(allocation_id)
        if contender is None:
            return []
        out: list[Command] = []
        self._settle(now_ns)
        if contender.phase is Phase.HOLDING:
            out.append(Revoke(allocation_id, contender.number))
        for client_id in list(contender.clients):
            out += self.gone(allocation_id, client_id, now_ns)
        self._sleep(contender, now_ns, out)
        self._dispatch(now_ns, out)
        del self._all[allocation_id]
        if self._turn is contender:
            self._turn = None
        return out

    def join(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """Adds a client to an allocation. Raises NotFound, AlreadyExists."""
        contender = self._known(allocation_id)
        if client_id in contender.clients:
            raise AlreadyExists(f"client {client_id} of allocation {allocation_id} is here already")
        out: list[Command] = []
        self._settle(now_ns)
        if contender.latency and not contender.clients:
            self._latency += 1
        contender.clients[client_id] = Client()
        self._signal(now_ns, out)
        return out

    def gone(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """Takes out a client that left or died; what it held is free at once."""
        found = self._find(allocation_id, client_id)
        if found is None:
            return []
        contender, client = found
        out: list[Command] = []
        self._settle(now_ns)
        contender.unwant(client)
        del contender.clients[client_id]
        if contender.latency and not contender.clients:
            self._latency -= 1
        if client.opened:
            # It can report no more: all of the time since it last did counts, or dying would be a way round a limit.
            contender.report(client, now_ns - client.reported_ns, now_ns)
            contender.close(client)
            if not contender.open_clients:
                self._drained(contender, False, now_ns, out)
        elif not contender.wanting_clients and contender.phase in (Phase.WAITING, Phase.THROTTLED):
            self._sleep(contender, now_ns, out)
        if not contender.clients and contender.phase is Phase.THINKING:
            self._sleep(contender, now_ns, out)
        self._dispatch(now_ns, out)
        return out

    # What clients say.

    def request(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """A launch of the client waits at the closed gate."""
        found = self._find(allocation_id, client_id)
        if found is None:
            return []
        contender, client = found
        out: list[Command] = []
        self._settle(now_ns)
        client.seen = True
        if contender.phase is Phase.HOLDING:
            if not client.opened:
                self._admit(contender, client, now_ns, out)
        else:
            contender.want(client)
            if contender.phase in (Phase.IDLE, Phase.THINKING):
                if contender.drained_ns >= 0:
                    contender.learn_think(now_ns - contender.drained_ns, self._settings)
                    contender.drained_ns = -1
                self._ready(contender, now_ns, out)
                self._dispatch(now_ns, out)
        return out

    def release(
        self, allocation_id: str, client_id: int, number: int, gpu_ns: int, follows: bool, now_ns: int
    ) -> list[Command]:
        """The client has drained; `follows` says that a launch waits already. GPU time is since its last report."""
        found = self._find(allocation_id, client_id)
        if found is None or not self._current(found[0], found[1], number):
            return []
        contender, client = found
        out: list[Command] = []
        self._settle(now_ns)
        contender.report(client, gpu_ns, now_ns)
        contender.close(client)
        if follows:
            contender.want(client)
        if not contender.open_clients:
            self._drained(contender, True, now_ns, out)
            self._dispatch(now_ns, out)
        elif follows and contender.phase is Phase.HOLDING:
            self._admit(contender, client, now_ns, out)
        return out

    def usage(
        self, allocation_id: str, client_id: int, number: int, gpu_ns: int, now_ns: int
    ) -> list[Command]:
        """GPU time of the client since its last report, while its grant lasts."""
        found = self._find(allocation_id, client_id)
        if found is not None and self._current(found[0], found[1], number):
            found[0].report(found[1], gpu_ns, now_ns)
        return []

    # What time does.

    def tick(self, now_ns: int) -> list[Command]:
        """Does what is due: slices that end, drains that take too long, thinking and throttling that is over."""
        out: list[Command] = []
        self._settle(now_ns)
        while self._timers and self._timers[0][0] <= now_ns:
            at_ns, _, contender = heappop(self._timers)
            if contender.timer_ns == at_ns:
                contender.timer_ns = -1
                if contender.phase is Phase.THINKING:
                    self._sleep(contender, now_ns, out)
                elif contender.phase in (Phase.WAITING, Phase.THROTTLED):
                    self._ready(contender, now_ns, out)
        occupant = self._occupant
        if occupant is not None and occupant.phase is Phase.HOLDING:
            if now_ns >= self._slice_end_ns and (self._waiting or occupant.limit_percent < 100):
                self._end_slice(occupant, now_ns, out)
            else:
                self._signal(now_ns, out)
        elif occupant is not None and occupant.phase is Phase.DRAINING and now_ns >= occupant.lease_end_ns:
            occupant.phase = Phase.OVERLAPPING
            self._overlapping.append(occupant)
            self._occupant = None
        self._dispatch(now_ns, out)
        return out

    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest, unless something happens before; None: never."""
        while self._timers and self._timers[0][2].timer_ns != self._timers[0][0]:
            heappop(self._timers)
        next_ns = self._timers[0][0] if self._timers else None
        occupant = self._occupant
        if occupant is None:
            return next_ns
        at_ns: int | None = None
        if occupant.phase is Phase.DRAINING:
            at_ns = occupant.lease_end_ns
        elif occupant.phase is Phase.THINKING:
            if self._turn is occupant and self._slice_end_ns > self._settled_ns:
                at_ns = self._slice_end_ns
        elif self._waiting or occupant.limit_percent < 100:
            at_ns = self._slice_end_ns
        elif self._contended and self._busy == 1 and not self._latency_rivals(occupant):
            at_ns = self._rival_left_ns(occupant) + self._settings.lone_after_ns
        if at_ns is None or (next_ns is not None and next_ns < at_ns):
            return next_ns
        return at_ns

    def account(self, allocation_id: str, now_ns: int) -> Account:
        """What the allocation has had. Raises NotFound."""
        contender = self._known(allocation_id)
        self._settle(now_ns)
        if contender is self._occupant or contender.phase is Phase.OVERLAPPING:
            contender.note_held(now_ns)
        sums = contender.window.sums(now_ns)
        waiting_ns = now_ns - contender.wait_from_ns if contender.wait_from_ns >= 0 else 0
        return Account(
            state=_STATES[contender.phase],
            overlapping=contender.phase is Phase.OVERLAPPING,
            throttled=contender.phase is Phase.THROTTLED,
            held_ns=sums.held_ns,
            gpu_ns=sums.gpu_ns,
            waiting_ns=waiting_ns,
            longest_wait_ns=max(sums.longest_wait_ns, waiting_ns),
            grants=contender.grants,
            lag_ns=self._competition.lag_ns(contender) if contender.active else 0,
        )

    # How one thing leads to another.

    def _ready(self, contender: Contender, now_ns: int, out: list[Command]) -> None:
        """It has work and its gates are closed: it waits, or is throttled."""
        if contender.wait_from_ns < 0:
            contender.wait_from_ns = now_ns
        throttled_until_ns = contender.throttled_until_ns(self._settings)
        if throttled_until_ns > now_ns:
            self._move(contender, Phase.THROTTLED, now_ns)
            self._set_timer(contender, throttled_until_ns)
            self._signal(now_ns, out)
            return
        first = self._waiting == 0
        self._move(contender, Phase.WAITING, now_ns)
        self._signal(now_ns, out)
        urgent = contender.urgent(now_ns, self._settings)
        if contender.latency and not urgent:
            self._set_timer(contender, contender.period_end_ns)
        occupant = self._occupant
        if occupant is not None and occupant.phase is Phase.HOLDING:
            overstayed = first and now_ns >= self._slice_end_ns
            if overstayed or (urgent and not occupant.urgent(now_ns, self._settings)):
                self._revoke(occupant, now_ns, out)

    def _drained(self, contender: Contender, thinks: bool, now_ns: int, out: list[Command]) -> None:
        """All its clients have released: the device is free, unless another has it already."""
        contender.note_held(now_ns)
        if contender.phase is Phase.OVERLAPPING:
            self._overlapping.remove(contender)
        else:
            self._occupant = None
        if contender.phase is not Phase.HOLDING:
            contender.drain_ns += (now_ns - contender.revoked_ns - contender.drain_ns) >> 3
        if contender.wanting_clients:
            self._ready(contender, now_ns, out)
            return
        if thinks:
            contender.drained_ns = now_ns
        anticipation_ns = contender.anticipation_ns(self._settings) if thinks else 0
        if anticipation_ns and contender.throttled_until_ns(self._settings) <= now_ns:
            self._move(contender, Phase.THINKING, now_ns)
            self._set_timer(contender, now_ns + anticipation_ns)
        else:
            self._sleep(contender, now_ns, out)

    def _sleep(self, contender: Contender, now_ns: int, out: list[Command]) -> None:
        if contender.phase is Phase.IDLE:
            return
        if self._occupant is contender:
            contender.note_held(now_ns)
            self._occupant = None
        contender.wait_from_ns = -1
        self._move(contender, Phase.IDLE, now_ns)
        last, at_ns, other_ns = self._left
        self._left = (contender, now_ns, other_ns if last is contender else at_ns)
        self._signal(now_ns, out)

    def _dispatch(self, now_ns: int, out: list[Command]) -> None:
        """Gives a free device to whoever is next, or waits for him where he is about to come back."""
        occupant = self._occupant
        if occupant is not None and occupant.phase is not Phase.THINKING:
            return
        best = self._pick(now_ns) if self._waiting else None
        if occupant is not None and occupant is not best:
            occupant.note_held(now_ns)
        if best is not occupant:
            self._occupant = best
            if best is not None:
                best.held_from_ns = now_ns
        if best is not None and best.phase is Phase.WAITING:
            self._grant(best, now_ns, out)

    def _pick(self, now_ns: int) -> Contender | None:
        if self._latency:
            urgent = self._competition.pick_urgent(self._contenders, now_ns)
            if urgent is not None:
                return urgent
        turn = self._turn
        if turn is not None and now_ns < self._slice_end_ns and turn in self._contenders:
            return turn
        return self._competition.pick(self._contenders)

    def _grant(self, contender: Contender, now_ns: int, out: list[Command]) -> None:
        self._move(contender, Phase.HOLDING, now_ns)
        if self._turn is not contender or now_ns >= self._slice_end_ns:
            self._begin_turn(contender, now_ns)
        contender.window.add_wait(now_ns, now_ns - contender.wait_from_ns)
        contender.wait_from_ns = -1
        contender.granted_ns = now_ns
        contender.gpu_ns = 0
        contender.tat_ns = max(contender.tat_ns, now_ns)
        contender.grants += 1
        contender.number = self._next_number()
        for client in contender.clients.values():
            if client.seen:
                contender.open(client, contender.number, now_ns)
        self._contended = self._is_contended(contender, now_ns)
        out.append(Grant(contender.id, contender.number, self._contended))

    def _admit(self, contender: Contender, client: Client, now_ns: int, out: list[Command]) -> None:
        """Opens the gate of a client whose allocation holds. The number is new, so that the client can tell it from
        the one that it released; the others may answer either."""
        contender.number = self._next_number()
        contender.open(client, contender.number, now_ns)
        out.append(Grant(contender.id, contender.number, self._contended))

    def _begin_turn(self, contender: Contender, now_ns: int) -> None:
        if self._turn is not None:
            self._competition.end_turn(self._turn)
        self._turn = contender
        self._slice_end_ns = now_ns + self._settings.slice_ns

    def _end_slice(self, occupant: Contender, now_ns: int, out: list[Command]) -> None:
        """The holder's slice is used up and somebody waits, or its limit must be looked at."""
        if occupant.limit_percent >= 100 and self._renews(occupant, now_ns):
            self._begin_turn(occupant, now_ns)
        else:
            self._revoke(occupant, now_ns, out)

    def _renews(self, occupant: Contender, now_ns: int) -> bool:
        candidates: Iterable[Contender] = (occupant, *self._contenders)
        if self._latency:
            urgent = self._competition.pick_urgent(candidates, now_ns)
            if urgent is not None:
                return urgent is occupant
        return self._competition.pick(candidates) is occupant

    def _revoke(self, occupant: Contender, now_ns: int, out: list[Command]) -> None:
        self._move(occupant, Phase.DRAINING, now_ns)
        occupant.revoked_ns = now_ns
        grace_ns = self._settings.drain_grace_ns
        expected_ns = self._settings.queue_cap_ns + min(occupant.drain_ns, grace_ns)
        occupant.lease_end_ns = now_ns + expected_ns + grace_ns
        out.append(Revoke(occupant.id, occupant.number))

    # What is kept in step.

    def _move(self, contender: Contender, phase: Phase, now_ns: int) -> None:
        """Changes its phase, and with it who competes and who can be picked. Clears its timer."""
        old = contender.phase
        contender.phase = phase
        contender.timer_ns = -1
        if old is Phase.WAITING:
            self._waiting -= 1
        if old is Phase.IDLE:
            self._busy += 1
        competes = True
        if phase is Phase.WAITING:
            self._waiting += 1
            self._contenders[contender] = None
        elif phase is Phase.THINKING:
            self._contenders[contender] = None
        else:
            self._contenders.pop(contender, None)
            competes = phase is not Phase.IDLE and phase is not Phase.THROTTLED
            if phase is Phase.IDLE:
                self._busy -= 1
        if competes != contender.active:
            if competes:
                self._competition.enter(contender, now_ns)
            else:
                self._competition.leave(contender, now_ns)

    def _settle(self, now_ns: int) -> None:
        """Charges the time since the last event, before anything is decided by it."""
        elapsed_ns = now_ns - self._settled_ns
        if elapsed_ns <= 0:
            return
        self._settled_ns = now_ns
        if self._occupant is not None:
            self._competition.charge(self._occupant, elapsed_ns)
        for contender in self._overlapping:
            self._competition.charge(contender, elapsed_ns)
            self._competition.cap_debt(contender)

    def _signal(self, now_ns: int, out: list[Command]) -> None:
        """Tells the holder when it gets company, and when it has long been alone."""
        occupant = self._occupant
        if occupant is not None and occupant.phase is Phase.HOLDING:
            contended = self._is_contended(occupant, now_ns)
            if contended != self._contended:
                self._contended = contended
                out.append(Contend(occupant.id, occupant.number, contended))

    def _is_contended(self, holder: Contender, now_ns: int) -> bool:
        """Whether the holder must keep its queue short: others have or lately had work, one of the latency class may
        come at any time, or its own limit is to be kept."""
        if self._busy > 1 or holder.limit_percent < 100 or self._latency_rivals(holder):
            return True
        left_ns = self._rival_left_ns(holder)
        return left_ns >= 0 and now_ns < left_ns + self._settings.lone_after_ns

    def _latency_rivals(self, holder: Contender) -> bool:
        return self._latency > (1 if holder.latency and holder.clients else 0)

    def _rival_left_ns(self, holder: Contender) -> int:
        last, at_ns, other_ns = self._left
        return other_ns if last is holder else at_ns

    def _set_timer(self, contender: Contender, at_ns: int) -> None:
        contender.timer_ns = at_ns
        self._timers_set += 1
        heappush(self._timers, (at_ns, self._timers_set, contender))

    def _next_number(self) -> int:
        self._number = self._number % MAX_NUMBER + 1
        return self._number

    def _current(self, contender: Contender, client: Client, number: int) -> bool:
        """Whether the number is of the grant that the client was given, or of a later one of the same slice."""
        if not client.opened or contender.phase not in OPEN or not 0 < number <= MAX_NUMBER:
            return False
        return (number - client.opened) % MAX_NUMBER <= (contender.number - client.opened) % MAX_NUMBER

    def _find(self, allocation_id: str, client_id: int) -> tuple[Contender, Client] | None:
        contender = self._all.get(allocation_id)
        if contender is None:
            return None
        client = contender.clients.get(client_id)
        return None if client is None else (contender, client)

    def _known(self, allocation_id: str) -> Contender:
        contender = self._all.get(allocation_id)
        if contender is None:
            raise NotFound(f"allocation {allocation_id} is not on this device: add it first")
        return contender
