"""Who has a device that takes turns, who is about to give it back, and whose work runs on beside."""

from edgeshare.contract.units import NS_PER_US
from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.grants import OVERDUE_NS
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.phases import DRAINING, ENDING, OVERLAPPING, THINKING
from sharemgr.node.turns.settings import STOOD_STILL_NS
from sharemgr.node.turns.share.limit import is_limited
from sharemgr.node.turns.slices.field import Field
from sharemgr.node.turns.slices.overruns import Overruns

SOONER_NS = 25 * NS_PER_US
"""A device that falls free sooner than was foretold by less than this is not worth waking the next client for."""


class Occupancy:
    """Of one device. What is charged to whom while time goes by follows from it."""

    def __init__(self, field: Field, hand_overs: HandOvers) -> None:
        self._field = field
        self._hand_overs = hand_overs
        self.occupant: Contender | None = None
        """Has the device: HOLDING, DRAINING, or THINKING and waited for."""
        self.ending: Contender | None = None
        """About to drain: the device is still its, the occupant is next."""
        self.foreseen_end_ns = 0
        """Of the one about to drain: until then the occupant does not launch."""
        self.overruns = Overruns(field.competition)
        self.contended = False
        """As the holder was told."""

    def clear(self) -> None:
        """Nobody has it by turns any more."""
        self.occupant = self.ending = self._field.turn = None
        self.overruns.clear()

    def forget(self, contender: Contender) -> None:
        """The contender was removed."""
        self._field.forget(contender)
        self.overruns.forget(contender)

    def charge(self, elapsed_ns: int) -> None:
        """Time went by."""
        charged = self.ending or self.occupant
        if charged is not None:
            charged.charged_ns += elapsed_ns
        if elapsed_ns >= STOOD_STILL_NS:
            if self.ending is not None:
                self.ending.stood_still_ns += elapsed_ns
            if self.occupant is not None:
                self.occupant.stood_still_ns += elapsed_ns
                # What it used before the other's end was heard of is owed as little.
                self.occupant.before = None
            return
        if charged is not None:
            self._field.competition.charge(charged, elapsed_ns, not self.overruns.run_beside(charged))
        self.overruns.charge(charged, elapsed_ns)

    def note_held(self, contender: Contender, now_ns: int) -> None:
        """Brings its window up to date."""
        if (self.ending or self.occupant) is contender or contender.phase is OVERLAPPING:
            contender.note_held(now_ns)

    def correct(self, contender: Contender) -> None:
        """The contender has drained: what it was charged for without having had the device is nobody's, but for an
        interruption of another's turn for it, and what it used while the one before it was still charged is its."""
        competition = self._field.competition
        before, contender.before = contender.before, None
        owes_ns, contender.owes_ns = contender.owes_ns, 0
        competition.charge(contender, owes_ns)
        used_ns = contender.gpu_ns - contender.charged_ns
        if used_ns <= 0:
            nobodys_ns = self._hand_overs.unused_ns(contender)
            competition.charge(contender, -nobodys_ns)
            self.overruns.held(contender, -used_ns - nobodys_ns)
        elif before is not None and before.active:
            competition.charge(contender, used_ns)
            competition.charge(before, -used_ns)

    def foresee(self, occupant: Contender, now_ns: int) -> None:
        """Takes the device from a draining occupant that has foreseen its end: another is granted at once, to begin
        then. So nobody has to be woken at that moment but the one that launches."""
        self.note_held(occupant, now_ns)
        self.expect(occupant)
        occupant.phase = ENDING
        self.ending = occupant

    def expect(self, contender: Contender) -> None:
        """Goes by when one that is about to drain says that it will have."""
        # What it foretells may be a lie, and is no reason to wait for it longer.
        self.foreseen_end_ns = min(contender.foretold_ns, contender.lease_end_ns)
        contender.late_ns = max(contender.late_ns, self.foreseen_end_ns + OVERDUE_NS)

    def end(self, now_ns: int, most_ns: int) -> bool:
        """The one that was about to drain has drained, or took too long: the device is the occupant's. Whether that is
        to begin sooner than it was told; its turn is then no longer than ``most_ns``."""
        assert self.ending is not None
        self._field.competition.end_turn(self.ending)
        self.ending = None
        occupant = self.occupant
        if occupant is None:
            return False
        # What it says it used is held against the time that it had: since the other one's work ended, which is
        # somewhat before that one says so. What it held is counted from now on: what was foretold may be a lie.
        occupant.granted_ns = min(now_ns, max(occupant.granted_ns, self.foreseen_end_ns))
        occupant.end_wait(occupant.granted_ns)
        occupant.held_from_ns = now_ns
        if self.foreseen_end_ns <= now_ns + SOONER_NS:
            return False
        # What was foretold may be a lie: who begins sooner has no more than a turn is reckoned to cost (q).
        self._field.slice_end_ns = min(self._field.slice_end_ns, now_ns + most_ns)
        return True

    def free_ns(self) -> int:
        """When the one before the holder will have drained; a time that is over where it has."""
        return self.foreseen_end_ns if self.ending is not None else 0

    def unearned_ns(self, occupant: Contender) -> int:
        """How much longer it must hold so as not to be behind when the hand-over to it comes off its charge."""
        unused_ns = self._hand_overs.usual_ns if occupant.handed_over else 0
        return max(0, min(unused_ns, unused_ns + self._field.competition.lag_ns(occupant)))

    def sure_end_ns(self, occupant: Contender) -> int:
        """Before when nobody's waking ends the turn of one that has been granted the device."""
        return occupant.granted_ns + self._hand_overs.least_turn_ns

    def known_end_ns(self, now_ns: int) -> int:
        """Before when the holder will not be revoked; 0 where it may be at any time."""
        end_ns, occupant = self._field.slice_end_ns, self.occupant
        if self._field.rivals.latency_present:
            return 0
        if occupant is not None and self._field.rivals.may_wake(occupant, now_ns):
            end_ns = min(end_ns, self.sure_end_ns(occupant))
            return end_ns if end_ns > now_ns else 0
        return end_ns

    def deadline_ns(self, timer_ns: int | None, now_ns: int) -> int | None:
        """When one must look at it at the latest, or at an allocation whose timer runs out then; None: never."""
        next_ns = timer_ns
        if self.ending is not None:
            look_ns = self.ending.look_ns()
            next_ns = look_ns if next_ns is None else min(next_ns, look_ns)
        occupant = self.occupant
        if occupant is None:
            return next_ns
        at_ns: int | None = None
        if occupant.phase is DRAINING:
            if not occupant.exclusive:
                at_ns = occupant.look_ns()
        elif occupant.phase is THINKING:
            if self._field.turn is occupant and self._field.slice_end_ns > now_ns:
                at_ns = self._field.slice_end_ns
        elif self._field.waiting or is_limited(occupant):
            at_ns = self._field.slice_end_ns
        elif self.contended:
            at_ns = self._field.rivals.contend_until_ns(occupant)
        if at_ns is None or (next_ns is not None and next_ns < at_ns):
            return next_ns
        return at_ns
