"""The slices of one device: who has it, who gets it next, and when that must be looked at again."""

from collections.abc import Collection

from edgeshare.units import NS_PER_MS
from sharemgr.node.commands import Check, Command, Contend, Grant, Prolong, Revoke
from sharemgr.node.contender import (
    DRAINING,
    ENDING,
    HOLDING,
    IDLE,
    OVERLAPPING,
    THINKING,
    THROTTLED,
    WAITING,
    Contender,
    Phase,
)
from sharemgr.node.policy import Competition, Settings
from sharemgr.node.rivals import Rivals
from sharemgr.node.timers import Timers

MAX_NUMBER = (1 << 30) - 1
"""The gate's word is 32 bits, two of which are flags (cuda_hook/wire.h); after this the numbers begin again at 1."""

LATE_NS = 10 * NS_PER_MS
"""How much longer than a full queue takes one waits for a drain before one looks whether its processes are stopped.
With kernels below this one never has to look; the other one runs within a slice and this of the stop."""


class Slices:
    """The device's state, moved on by an Arbiter: it calls settle, then what happened, then take."""

    def __init__(self, settings: Settings) -> None:
        self.competition = Competition(settings)
        self.rivals = Rivals(settings)
        self._settings = settings
        self._now_ns = 0
        self._out: list[Command] = []
        self._contenders: dict[Contender, None] = {}  # WAITING or THINKING, in the order of their coming
        self._waiting = 0  # how many of these are WAITING
        self._occupant: Contender | None = None  # has the device: HOLDING, DRAINING, or THINKING and waited for
        self._ending: Contender | None = None  # about to drain: the device is still its, the occupant is next
        self._foreseen_end_ns = 0  # of the one about to drain
        self._overlapping: list[Contender] = []
        self._early_ns = 0  # when the occupant's successor is due to be granted; 0: when the occupant has drained
        self._late_ns = 0  # how late such a grant usually is
        self._contended = False  # as the holder was told
        self._turn: Contender | None = None  # whose turn the last slice is
        self._slice_end_ns = 0
        self._number = 0
        self._timers = Timers()

    def settle(self, now_ns: int) -> None:
        """Charges the time since the last event, before anything is decided by it."""
        elapsed_ns = now_ns - self._now_ns
        if elapsed_ns <= 0:
            return
        self._now_ns = now_ns
        charged = self._ending or self._occupant
        if charged is not None:
            self.competition.charge(charged, elapsed_ns)
        for contender in self._overlapping:
            self.competition.charge(contender, elapsed_ns)
            self.competition.cap_debt(contender)

    def take(self) -> list[Command]:
        """Gives a device that is free, or is about to be, to whoever is next, and returns what is to be done since the
        last call."""
        occupant = self._occupant
        if occupant is not None and occupant.phase is DRAINING:
            early_ns = self._early_at_ns(occupant)
            if early_ns is not None and self._now_ns >= early_ns:
                self._grant_early(occupant)
                early_ns = None
            self._early_ns = early_ns or 0
        self._dispatch()
        out, self._out = self._out, []
        return out

    # What happens.

    def ready(self, contender: Contender) -> None:
        """It has work and its gates are closed: it waits, or is throttled."""
        now_ns = self._now_ns
        if contender.wait_from_ns < 0:
            contender.wait_from_ns = now_ns
        throttled_until_ns = contender.throttled_until_ns(self._settings)
        if throttled_until_ns > now_ns:
            self._move(contender, THROTTLED)
            self._timers.set(contender, throttled_until_ns)
            self.signal()
            return
        first = self._waiting == 0
        self._move(contender, WAITING)
        self.signal()
        urgent = contender.urgent(now_ns, self._settings)
        if contender.latency and not urgent:
            self._timers.set(contender, contender.period_end_ns)
        occupant = self._occupant
        if occupant is not None and occupant.phase is HOLDING:
            # Nobody looked at the end of a slice while nobody waited.
            overstayed = first and now_ns >= self._slice_end_ns
            if overstayed or (urgent and not occupant.urgent(now_ns, self._settings)):
                self._revoke(occupant)

    def admit(self, contender: Contender) -> None:
        """A client came in while its allocation holds. The number is new, so that the client can tell it from the one
        that it released; the others may answer either."""
        contender.open(self._next_number(), self._now_ns)
        self._out.append(Grant(contender.id, contender.number, self._contended))

    def released(self, contender: Contender, returns: bool) -> None:
        """A client of an allocation whose gates are open has drained or is gone; `returns`: the last one to do so may
        be back in a moment."""
        if contender.open_clients:
            if contender.phase is HOLDING:
                if contender.wanting_clients:
                    self.admit(contender)
                elif not contender.asking_clients:
                    # The gates that are still open were opened for another client's work.
                    self._revoke(contender)
            return
        now_ns = self._now_ns
        self.note_held(contender)
        if contender is self._ending:
            self._end()
        elif contender.phase is OVERLAPPING:
            self._overlapping.remove(contender)
        else:
            self._occupant = None
        if contender.phase is not HOLDING:
            contender.usual_drain_ns += (now_ns - contender.revoked_ns - contender.usual_drain_ns) >> 3
        if contender.wanting_clients:
            self.ready(contender)
            return
        contender.drained_ns = now_ns if returns else -1
        anticipation_ns = contender.anticipation_ns(self._settings) if returns else 0
        if anticipation_ns and contender.throttled_until_ns(self._settings) <= now_ns:
            self._move(contender, THINKING)
            self._timers.set(contender, now_ns + anticipation_ns)
        else:
            self.sleep(contender)

    def sleep(self, contender: Contender) -> None:
        """It has no work and is not expected to have any in a moment."""
        if self._occupant is contender:
            self.note_held(contender)
            self._occupant = None
        contender.wait_from_ns = -1
        self._move(contender, IDLE)
        self.signal()

    def forget(self, contender: Contender) -> None:
        """It was removed, and sleeps for ever."""
        if self._turn is contender:
            self._turn = None
        self.rivals.forget(contender)

    def note_held(self, contender: Contender) -> None:
        """Brings its window up to date."""
        if (self._ending or self._occupant) is contender or contender.phase is OVERLAPPING:
            contender.note_held(self._now_ns)

    def close(self, contender: Contender) -> None:
        """Calls its grant back, if it has one, without waiting for it."""
        if contender.phase is HOLDING:
            self._out.append(Revoke(contender.id, contender.number))

    def stopped(self, contender: Contender, client_ids: Collection[int]) -> None:
        """Processes of an allocation were seen stopped. A drain that only they owe is waited for no more: what they
        queued is bounded and runs out by itself."""
        if contender is self._occupant and contender.phase is DRAINING and contender.stopped(client_ids):
            self._occupant = None
            self._overlap(contender)

    def compete_again(self, contender: Contender) -> None:
        """A launch waits at the gate of an allocation whose drain is waited for no more. What it queued may be waiting
        for that very launch, so it owes no release any more and takes part again."""
        self.note_held(contender)
        self._overlapping.remove(contender)
        for client in contender.clients.values():
            if client.opened:
                contender.close(client)
        self.ready(contender)

    def tick(self) -> None:
        """Does what is due: slices that end, drains that take too long, thinking and throttling that is over."""
        now_ns = self._now_ns
        for contender in self._timers.due(now_ns):
            if contender.phase is THINKING:
                self.sleep(contender)
            else:
                self.ready(contender)
        ending = self._ending
        if ending is not None and now_ns >= ending.lease_end_ns:
            self._end()
            self._overlap(ending)
        occupant = self._occupant
        if occupant is None:
            return
        if occupant.phase is HOLDING:
            if now_ns >= self._slice_end_ns and (self._waiting or occupant.limit_percent < 100):
                self._end_slice(occupant)
            else:
                self.signal()
        elif occupant.phase is DRAINING and now_ns >= occupant.lease_end_ns:
            self._occupant = None
            self._overlap(occupant)
        elif occupant.phase is DRAINING and now_ns >= occupant.late_ns:
            occupant.late_ns = now_ns + 2 * LATE_NS
            self._out.append(Check(occupant.id))

    def signal(self) -> None:
        """Tells the holder when it gets company, and when it has long been alone."""
        occupant = self._occupant
        if occupant is not None and occupant.phase is HOLDING:
            contended = self.rivals.contend(occupant, self._now_ns)
            if contended != self._contended:
                self._contended = contended
                self._out.append(Contend(occupant.id, occupant.number, contended))

    def device_free_ns(self) -> int:
        """When the one before the holder will have drained; a time that is over where it has."""
        return self._foreseen_end_ns if self._ending is not None else 0

    def known_end_ns(self) -> int:
        """Before when the holder will not be revoked; 0 where it may be at any time."""
        return 0 if self.rivals.latency_present else self._slice_end_ns

    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest; None: never."""
        next_ns = self._timers.next_ns()
        ending = self._ending
        if ending is not None and (next_ns is None or ending.lease_end_ns < next_ns):
            next_ns = ending.lease_end_ns
        occupant = self._occupant
        if occupant is None:
            return next_ns
        at_ns: int | None = None
        if occupant.phase is DRAINING:
            at_ns = min(occupant.late_ns, occupant.lease_end_ns)
            if self._early_ns:
                # What it foretold may be a lie, and is no reason to wait for it longer.
                at_ns = min(at_ns, self._early_ns)
        elif occupant.phase is THINKING:
            if self._turn is occupant and self._slice_end_ns > self._now_ns:
                at_ns = self._slice_end_ns
        elif self._waiting or occupant.limit_percent < 100:
            at_ns = self._slice_end_ns
        elif self._contended:
            at_ns = self.rivals.contend_until_ns(occupant)
        if at_ns is None or (next_ns is not None and next_ns < at_ns):
            return next_ns
        return at_ns

    # Who gets it.

    def _dispatch(self) -> None:
        occupant = self._occupant
        if occupant is not None and (occupant.phase is HOLDING or occupant.phase is DRAINING):
            return
        best = self._pick(self._contenders) if self._waiting else None
        if best is not occupant:
            if occupant is not None:
                self.note_held(occupant)
            if best is not None:
                best.held_from_ns = self._now_ns
            self._occupant = best
        if best is not None and best.phase is WAITING:
            self._grant(best)

    def _pick(self, candidates: Collection[Contender]) -> Contender | None:
        if self.rivals.latency_present:
            urgent = self.competition.pick_urgent(candidates, self._now_ns)
            if urgent is not None:
                return urgent
        turn = self._turn
        if turn is not None and self._now_ns < self._slice_end_ns and turn in candidates:
            return turn
        return self.competition.pick(candidates)

    def _renews(self, occupant: Contender) -> bool:
        """Whether the holder, whose slice is used up, is the one to get the next. One with a limit drains first: what
        it used counts."""
        return occupant.limit_percent == 100 and self._pick((occupant, *self._contenders)) is occupant

    def _grant(self, contender: Contender) -> None:
        now_ns = self._now_ns
        self._move(contender, HOLDING)
        if self._turn is not contender or now_ns >= self._slice_end_ns:
            self._begin_turn(contender)
        contender.window.add_wait(now_ns, now_ns - contender.wait_from_ns)
        contender.wait_from_ns = -1
        contender.granted_ns = now_ns
        contender.gpu_ns = 0
        contender.tat_ns = max(contender.tat_ns, now_ns)
        contender.grants += 1
        contender.open(self._next_number(), now_ns)
        self._contended = self.rivals.contend(contender, now_ns)
        self._out.append(Grant(contender.id, contender.number, self._contended))

    def _early_at_ns(self, occupant: Contender) -> int | None:
        """When to grant the one after a draining occupant, so that its first launch arrives just as the device falls
        free; None: not before the occupant has drained."""
        if self._ending is not None or not self._waiting:
            return None
        drained_at_ns = occupant.drained_at_ns()
        if not drained_at_ns:
            return None
        # One with a limit drains before it is compared: what it used counts.
        candidates = (occupant, *self._contenders) if occupant.limit_percent == 100 else self._contenders
        best = self._pick(candidates)
        if best is None or best.phase is not WAITING:
            return None
        return drained_at_ns - min(best.launch_ns + self._late_ns, self._settings.lead_most_ns)

    def _grant_early(self, occupant: Contender) -> None:
        """Takes the device from a draining occupant that has foreseen its end: it is time for that."""
        if self._early_ns and self._now_ns >= self._early_ns:
            late_ns = min(self._now_ns - self._early_ns, self._settings.lead_most_ns)
            self._late_ns += (late_ns - self._late_ns) >> 2
        self.note_held(occupant)
        self._foreseen_end_ns = occupant.drained_at_ns()
        occupant.phase = ENDING
        self._ending = occupant
        self._occupant = None

    def _end(self) -> None:
        """The one that was about to drain has drained, or took too long: the device is the occupant's."""
        self._ending = None
        if self._occupant is not None:
            self._occupant.held_from_ns = self._now_ns
            # What it says it used is held against the time that it had: since the other one's work ended, which is
            # somewhat before that one says so.
            self._occupant.granted_ns = min(self._now_ns, max(self._occupant.granted_ns, self._foreseen_end_ns))

    def _overlap(self, contender: Contender) -> None:
        contender.phase = OVERLAPPING
        contender.overruns += 1
        self._overlapping.append(contender)
        if contender.wanting_clients:
            self.compete_again(contender)

    def _end_slice(self, occupant: Contender) -> None:
        if self._renews(occupant):
            self._begin_turn(occupant)
            if self._contended:
                self._out.append(Prolong(occupant.id, occupant.number))
        else:
            self._revoke(occupant)

    def _begin_turn(self, contender: Contender) -> None:
        if self._turn is not None:
            self.competition.end_turn(self._turn)
        self._turn = contender
        self._slice_end_ns = self._now_ns + self._settings.slice_ns

    def _revoke(self, occupant: Contender) -> None:
        self._move(occupant, DRAINING)
        occupant.revoked_ns = self._now_ns
        grace_ns = self._settings.drain_grace_ns
        expected_ns = self._settings.queue_cap_ns + min(occupant.usual_drain_ns, grace_ns)
        occupant.lease_end_ns = self._now_ns + expected_ns + grace_ns
        occupant.late_ns = self._now_ns + self._settings.queue_cap_ns + LATE_NS
        self._out.append(Revoke(occupant.id, occupant.number))

    def _next_number(self) -> int:
        self._number = self._number % MAX_NUMBER + 1
        return self._number

    # What is kept in step.

    def _move(self, contender: Contender, phase: Phase) -> None:
        """Changes its phase, and with it who competes and who can be picked. Clears its timer."""
        old = contender.phase
        contender.phase = phase
        contender.timer_ns = -1
        if old is WAITING:
            self._waiting -= 1
        elif old is IDLE:
            self.rivals.wake()
        if phase is WAITING or phase is THINKING:
            self._contenders[contender] = None
            self._waiting += phase is WAITING
        else:
            self._contenders.pop(contender, None)
            if phase is IDLE:
                self.rivals.sleep(contender, self._now_ns)
        competes = phase is not IDLE and phase is not THROTTLED
        if competes and not contender.active:
            self.competition.enter(contender, self._now_ns)
        elif contender.active and not competes:
            self.competition.leave(contender, self._now_ns)
