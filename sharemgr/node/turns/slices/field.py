"""The allocations of one device that have work: who competes, whose turn it is, who is next; and when one must look at
them again."""

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

from sharemgr.node.turns.contender import Contender
from sharemgr.node.turns.phases import IDLE, THINKING, THROTTLED, WAITING, Phase
from sharemgr.node.turns.policy import Competition
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.limit import is_limited
from sharemgr.node.turns.slices.ends import Ends
from sharemgr.node.turns.slices.rivals import Rivals


class Field:
    """Keeps in step what depends on the allocations' phases, and asks the rule."""

    def __init__(self, settings: Settings, ends: Ends) -> None:
        self.competition = Competition(settings)
        self.rivals = Rivals(settings)
        self.waiting = 0
        """How many wait for the device."""
        self.turn: Contender | None = None
        """Whose turn the last slice is."""
        self.slice_end_ns = 0
        self._ends = ends
        self._slice_ns = settings.slice_ns
        self._contenders: dict[Contender, None] = {}  # WAITING or THINKING, in the order of their coming

    def move(self, contender: Contender, phase: Phase, now_ns: int) -> None:
        """Changes its phase, and with it who competes and who can be picked. Clears its timer."""
        old = contender.phase
        contender.phase = phase
        self._follow(contender, old, phase, now_ns)

    def enter(self, contender: Contender, now_ns: int) -> None:
        """Turns begin: takes in one that has work, in the phase that it has."""
        self._follow(contender, IDLE, contender.phase, now_ns)

    def end(self, contenders: Collection[Contender], now_ns: int) -> None:
        """Turns are taken no more: what each does stands in its phase, what it owes or is owed is its lag."""
        competition = self.competition
        lags_ns = [
            competition.lag_ns(each) if each.active else competition.carried_ns(each, now_ns) for each in contenders
        ]
        for contender, lag_ns in zip(contenders, lags_ns, strict=True):
            if contender.phase is not IDLE:
                self._follow(contender, contender.phase, IDLE, now_ns)
            contender.lag_ns, contender.left_ns = lag_ns, now_ns

    def next(self, now_ns: int, occupant: Contender | None = None) -> Contender | None:
        """Who gets the device now, which may be one that only thinks: then it is waited for. None where nobody waits.

        `occupant`, which has the device still, may be the next again, but for one with a limit: that drains first,
        since what it used counts.
        """
        if not self.waiting:
            return occupant if occupant is not None and not is_limited(occupant) else None
        if occupant is None or is_limited(occupant):
            return self._best(self._contenders, now_ns)
        return self._best((occupant, *self._contenders), now_ns)

    def next_after(self, occupant: Contender, now_ns: int) -> Contender | None:
        """Who gets the device when one that drains will have. After a long turn that is decided as of then: what the
        others are behind by, they are behind by its drain, too."""
        more_ns = min(occupant.foretold_ns, occupant.lease_end_ns) - now_ns
        if not self.competition.would_be_long(occupant, more_ns):
            return self.next(now_ns, occupant)
        self.competition.charge(occupant, more_ns)
        best = self.next(now_ns, occupant)
        self.competition.charge(occupant, -more_ns)
        return best

    def anticipation_ns(self, contender: Contender, most_ns: int, now_ns: int) -> int:
        """How long one that has drained and may be back in a moment is waited for: a slice, where some of its pauses
        are shorter than 2 A, the next one is ahead of its part, and nothing can end the turn of that for long."""
        usual_ns = contender.anticipation_ns(most_ns)
        if contender.think_ns > 2 * most_ns - most_ns // 8:
            return usual_ns
        best = self._pick(self._contenders, now_ns)
        if best is None or not self.competition.is_long(best) or self.competition.lag_ns(best) >= 0:
            return usual_ns
        return max(usual_ns, self._slice_ns)

    def goes_before(self, contender: Contender, holder: Contender, now_ns: int) -> bool:
        """Whether one that has not had more than its part would be picked rather than the holder."""
        return self.competition.lag_ns(contender) >= 0 and self._pick((contender, holder), now_ns) is contender

    def begin_turn(self, contender: Contender, now_ns: int, slice_ns: int, drains: bool = False) -> None:
        """A slice of this length begins. ``drains``: the turn before it is over when its drain is."""
        if self.turn is not None and not drains:
            self.competition.end_turn(self.turn)
        self.turn = contender
        self.slice_end_ns = self._ends.place(self, now_ns + slice_ns)

    def forget(self, contender: Contender) -> None:
        """The contender was removed, and sleeps for ever."""
        if self.turn is contender:
            self.turn = None
        self.rivals.forget(contender)

    def _follow(self, contender: Contender, old: Phase, phase: Phase, now_ns: int) -> None:
        contender.timer_ns = -1
        if old is WAITING:
            self.waiting -= 1
        elif old is IDLE:
            self.rivals.wake()
        if phase is WAITING or phase is THINKING:
            self._contenders[contender] = None
            self.waiting += phase is WAITING
        else:
            self._contenders.pop(contender, None)
            if phase is IDLE:
                self.rivals.sleep(contender, now_ns)
        competes = phase is not IDLE and phase is not THROTTLED
        if competes and not contender.active:
            self.competition.enter(contender, now_ns)
        elif contender.active and not competes:
            self.competition.leave(contender, now_ns)

    def _best(self, candidates: Collection[Contender], now_ns: int) -> Contender | None:
        turn = self.turn
        if turn is not None and now_ns < self.slice_end_ns and turn in candidates:
            return self._urgent(candidates, now_ns) or turn
        return self._pick(candidates, now_ns)

    def _pick(self, candidates: Collection[Contender], now_ns: int) -> Contender | None:
        return self._urgent(candidates, now_ns) or self.competition.pick(candidates)

    def _urgent(self, candidates: Collection[Contender], now_ns: int) -> Contender | None:
        return self.competition.pick_urgent(candidates, now_ns) if self.rivals.latency_present else None


class Timers:
    """When an allocation must be looked at again: one timer for each; what for, its phase says."""

    def __init__(self) -> None:
        # A heap. An entry stays in it until its time has come, also where its allocation has another timer by then.
        self._entries: list[tuple[int, int, Contender]] = []
        self._set = 0  # so that equal times are taken in the order in which they were set

    def set(self, contender: Contender, at_ns: int) -> None:
        """Sets the allocation's timer, in place of the one that it has."""
        contender.timer_ns = at_ns
        self._set += 1
        heappush(self._entries, (at_ns, self._set, contender))

    def next_ns(self) -> int | None:
        """The time of the first; None: there is none."""
        entries = self._entries
        while entries and entries[0][2].timer_ns != entries[0][0]:
            heappop(entries)
        return entries[0][0] if entries else None

    def due(self, now_ns: int) -> Iterator[Contender]:
        """Takes out the allocations whose time has come. Timers may be set and cleared meanwhile."""
        while self._entries and self._entries[0][0] <= now_ns:
            at_ns, _, contender = heappop(self._entries)
            if contender.timer_ns == at_ns:
                contender.timer_ns = -1
                yield contender
