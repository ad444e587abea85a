"""The slices of one device: who has it, who gets it next, and when that must be looked at again."""

from collections.abc import Collection

from sharemgr.node.turns.commands import Begin, Command, Contend, Grant, Numbers, Prolong
from sharemgr.node.turns.contender import Client, Contender
from sharemgr.node.turns.grants import Grants
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.phases import DRAINING, HOLDING, IDLE, OVERLAPPING, THINKING, THROTTLED, WAITING
from sharemgr.node.turns.policy import RECKONED_SLICES
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.latency import is_urgent
from sharemgr.node.turns.share.limit import is_limited, throttled_until_ns
from sharemgr.node.turns.slices.ends import Ends
from sharemgr.node.turns.slices.field import Field, Timers
from sharemgr.node.turns.slices.occupancy import Occupancy


class Slices(Grants):
    """Exclusive turns of one device."""

    def __init__(self, settings: Settings, ends: Ends, numbers: Numbers, hand_overs: HandOvers) -> None:
        super().__init__(settings, numbers, hand_overs)
        self.field = Field(settings, ends)
        self.device = Occupancy(self.field, hand_overs)
        self._timers = Timers()

    def settle(self, now_ns: int) -> None:
        """Charges the time since the last event, before anything is decided by it."""
        elapsed_ns = now_ns - self._now_ns
        if elapsed_ns <= 0:
            return
        self._now_ns = now_ns
        self.device.charge(elapsed_ns)

    def take(self) -> list[Command]:
        """Gives a device that is free, or is about to be, to whoever is next, and returns what is to be done since the
        last call."""
        self._dispatch()
        return self.give_commands()

    def begin(self, contenders: Collection[Contender], longest_ns: int, now_ns: int) -> None:
        """Takes turns from now on, by the lag of each. Who had been let in drains beside whoever is first.
        ``longest_ns``: the most that one used at once lately."""
        self.settle(now_ns)
        for contender in contenders:
            if contender.open_clients:
                contender.enter_turns(now_ns)
                self.field.enter(contender, now_ns)
                self.device.overruns.add(contender)
                if contender.wanting_clients:
                    # Nobody looks after its drain any more, which may be waiting for that launch.
                    self.compete_again(contender)
            elif contender.phase is not IDLE:
                contender.phase = IDLE
                self.ready(contender)
        self.field.competition.resume([contender for contender in contenders if contender.active], longest_ns)

    def end(self, contenders: Collection[Contender], now_ns: int) -> int:
        """Takes no turns any more: what each does and owes, it knows itself. Returns the longest turn of late."""
        self.settle(now_ns)
        for contender in contenders:
            self.note_held(contender)
            self.device.overruns.used(contender, contender.leave_turns(now_ns))
        self.field.end(contenders, now_ns)
        self.device.clear()
        return self.field.competition.longest_ns

    def ready(self, contender: Contender) -> None:
        """The contender has work and its gates are closed: it waits, or is throttled."""
        now_ns = self._now_ns
        if contender.wait_from_ns < 0:
            contender.wait_from_ns = now_ns
        until_ns = throttled_until_ns(contender, self._settings)
        if until_ns > now_ns:
            self.field.move(contender, THROTTLED, self._now_ns)
            self._timers.set(contender, until_ns)
            self.signal()
            return
        first = self.field.waiting == 0
        self.field.move(contender, WAITING, self._now_ns)
        self.signal()
        urgent = is_urgent(contender, now_ns, self._settings)
        if contender.latency and not urgent:
            self._timers.set(contender, contender.period_end_ns)
        occupant = self.device.occupant
        if occupant is not None and occupant.phase is HOLDING:
            # Nobody looked at the end of a slice while nobody waited.
            overstayed = first and now_ns >= self.field.slice_end_ns
            if overstayed or (urgent and not is_urgent(occupant, now_ns, self._settings)):
                self._revoke(occupant)

    def woke(self, contender: Contender) -> None:
        """The contender was made ready after it had had no work. Unless it never had, the turn of a holder that it goes
        before ends once that has lasted for the least that one does; it pays for this. Who is next, the rule says."""
        occupant = self.device.occupant
        if contender.phase is not WAITING or not contender.grants:
            return
        if occupant is None or occupant.phase is not HOLDING or occupant.exclusive:
            return
        end_ns = max(self._now_ns + self.device.unearned_ns(occupant), self.device.sure_end_ns(occupant))
        if end_ns < self.field.slice_end_ns and self.field.goes_before(contender, occupant, self._now_ns):
            contender.owes_ns = 2 * self.hand_overs.usual_ns
            self.field.slice_end_ns = end_ns
            if end_ns == self._now_ns:
                self._revoke(occupant)

    def released(self, contender: Contender, returns: bool) -> None:
        """A client of an allocation whose gates are open has drained or is gone; `returns`: the last one to do so may
        be back in a moment."""
        if contender.open_clients:
            if contender.phase is HOLDING and not contender.exclusive:
                if contender.wanting_clients:
                    self.admit(contender)
                elif not contender.asking_clients:
                    # The gates that are still open were opened for another client's work.
                    self._revoke(contender)
            return
        now_ns = self._now_ns
        self.note_held(contender)
        if contender.phase is not OVERLAPPING:
            self.device.correct(contender)
        if contender is self.device.ending:
            self._end()
        elif contender.phase is not OVERLAPPING:
            self.device.occupant = None
        self.device.overruns.drained(contender)
        if contender.phase is not HOLDING:
            self._learn_drain(contender)
        if contender.wanting_clients:
            self.ready(contender)
            return
        contender.drained_ns = now_ns if returns else -1
        most_ns = self.hand_overs.anticipation_ns
        anticipation_ns = self.field.anticipation_ns(contender, most_ns, now_ns) if returns else 0
        if anticipation_ns and throttled_until_ns(contender, self._settings) <= now_ns:
            self.field.move(contender, THINKING, self._now_ns)
            self._timers.set(contender, now_ns + anticipation_ns)
        else:
            self.sleep(contender)

    def sleep(self, contender: Contender) -> None:
        """The contender has no work and is not expected to have any in a moment."""
        if self.device.occupant is contender:
            self.note_held(contender)
            self.device.occupant = None
        contender.end_wait(self._now_ns)
        self.field.move(contender, IDLE, self._now_ns)
        self.signal()

    def report(self, contender: Contender, client: Client, gpu_ns: int, now_ns: int) -> None:
        """A client says what GPU time it used since it last did."""
        self.device.overruns.used(contender, contender.report(client, gpu_ns, now_ns))

    def contends(self, contender: Contender) -> bool:
        """As the holder was told."""
        return self.device.contended

    def lag_ns(self, contender: Contender) -> int:
        """Held time that it is behind (above 0) or ahead of (below 0) its part, while it competes; else 0."""
        return self.field.competition.lag_ns(contender) if contender.active else 0

    def note_held(self, contender: Contender) -> None:
        """Brings its window up to date."""
        self.device.note_held(contender, self._now_ns)

    def foresees(self, contender: Contender) -> None:
        """One that was called back says when it will have drained, or at what other time than it said."""
        foretold_ns = contender.drained_at_ns()
        if not foretold_ns:
            return
        if 0 < contender.foretold_ns <= self._now_ns and not contender.passed_ns:
            # Whoever is next has begun by now.
            contender.passed_ns = contender.foretold_ns
        contender.foretold_ns = foretold_ns
        contender.lease_end_ns = max(contender.lease_end_ns, self._lease_end_ns(contender))
        if contender is self.device.ending:
            self.device.expect(contender)
            self._begin_anew()

    def compete_again(self, contender: Contender) -> None:
        """A launch waits at the gate of an allocation whose drain is waited for no more. What it queued may be waiting
        for that very launch, so it owes no release any more and takes part again."""
        self.note_held(contender)
        self.device.overruns.forgive(contender)
        self._forgive(contender)
        self.ready(contender)

    def tick(self) -> None:
        """Does what is due: slices that end, drains that take too long, thinking and throttling that is over."""
        now_ns = self._now_ns
        for contender in self._timers.due(now_ns):
            if contender.phase is THINKING:
                self.sleep(contender)
            else:
                self.ready(contender)
        if self.device.ending is not None:
            self._look_after(self.device.ending)
        occupant = self.device.occupant
        if occupant is None:
            return
        if occupant.phase is HOLDING:
            if now_ns >= self.field.slice_end_ns and (self.field.waiting or is_limited(occupant)):
                self._end_slice(occupant)
            else:
                self.signal()
        elif occupant.phase is DRAINING:
            self._look_after(occupant)

    def signal(self) -> None:
        """Tells the holder when it gets company, and when it has long been alone."""
        occupant = self.device.occupant
        if occupant is not None and occupant.phase is HOLDING:
            contended = self.field.rivals.contend(occupant, self._now_ns)
            if contended != self.device.contended:
                self.device.contended = contended
                self._out.append(Contend(occupant.id, occupant.number, contended))

    def ending(self) -> str | None:
        """Who is about to drain while the next is granted already."""
        return self.device.ending.id if self.device.ending is not None else None

    def known_end_ns(self) -> int:
        """Before when the holder will not be revoked; 0 where it may be at any time."""
        return self.device.known_end_ns(self._now_ns)

    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest; None: never."""
        return self.device.deadline_ns(self._timers.next_ns(), self._now_ns)

    def _dispatch(self) -> None:
        occupant = self.device.occupant
        if occupant is not None and occupant.phase is HOLDING:
            return
        if occupant is not None and occupant.phase is DRAINING:
            if not occupant.foretold_ns or self.device.ending is not None or not occupant.drains.are_foretold:
                return
            best = self.field.next_after(occupant, self._now_ns)
            if best is None or best.phase is not WAITING:
                return
            self.device.foresee(occupant, self._now_ns)
        else:
            best = self.field.next(self._now_ns)
        if best is not occupant:
            if occupant is not None:
                self.note_held(occupant)
            if best is not None:
                best.held_from_ns = self._now_ns
            self.device.occupant = best
        if best is not None and best.phase is WAITING:
            self._grant(best)

    def _grant(self, contender: Contender) -> None:
        # While the one before drains, the grant is of a time to come.
        begin_ns = max(self._now_ns, self.device.free_ns())
        self.field.move(contender, HOLDING, self._now_ns)
        contender.handed_over = self.field.turn is not contender
        if contender.handed_over or begin_ns >= self.field.slice_end_ns:
            self.field.begin_turn(contender, begin_ns, self._slice_ns(contender), drains=self.device.ending is not None)
        if begin_ns == self._now_ns:
            contender.end_wait(begin_ns)
        contender.grant(self._numbers.next(), begin_ns, self._now_ns, contender.runs_on)
        contender.before = self.device.ending
        contender.tat_ns = max(contender.tat_ns, begin_ns)
        self.device.contended = self.field.rivals.contend(contender, self._now_ns)
        self._out.append(Grant(contender.id, contender.number, self.device.contended))

    def _begin_anew(self) -> None:
        """The next one is to begin at another time than it was told."""
        occupant = self.device.occupant
        if occupant is not None and occupant.phase is HOLDING:
            self._out.append(Begin(occupant.id, occupant.number, self.device.contended))

    def _end(self) -> None:
        """The one that was about to drain has drained, or took too long: the device is the occupant's."""
        if self.device.end(self._now_ns, RECKONED_SLICES * self._settings.slice_ns):
            self._begin_anew()

    def _give_up(self, contender: Contender) -> None:
        if contender is self.device.ending:
            self._end()
        else:
            self.device.occupant = None
        self.device.overruns.add(contender)
        super()._give_up(contender)

    def _end_slice(self, occupant: Contender) -> None:
        if self.field.next(self._now_ns, occupant) is occupant:
            self.field.begin_turn(occupant, self._now_ns, self._slice_ns(occupant))
            if self.device.contended:
                self._out.append(Prolong(occupant.id, occupant.number))
        else:
            self._revoke(occupant)

    def _revoke(self, occupant: Contender) -> None:
        self.field.move(occupant, DRAINING, self._now_ns)
        super()._revoke(occupant)

    def _slice_ns(self, contender: Contender) -> int:
        return self.hand_overs.slice_ns(contender.drains.expected_ns(foretold_ns=0))
