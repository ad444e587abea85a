"""Grants beside each other: opens and closes the gates of one device as its rule says (rule.py)."""

from collections.abc import Iterable

from edgeshare.contract.units import NS_PER_US
from sharemgr.node.turns.beside.measurement import DEAR_NS
from sharemgr.node.turns.beside.rule import Gates
from sharemgr.node.turns.commands import Command, Contend, Grant, Numbers
from sharemgr.node.turns.contender import Client, Contender
from sharemgr.node.turns.grants import Grants
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.phases import DRAINING, ENDING, HOLDING, IDLE, THINKING, THROTTLED, WAITING
from sharemgr.node.turns.settings import Settings
from sharemgr.node.turns.share.limit import throttled_until_ns

BECOMES = {THINKING: IDLE, THROTTLED: WAITING, ENDING: DRAINING}
"""What one that was that by turns is here."""

WAY_NS = 20 * NS_PER_US
"""What a hand-over takes where contexts change at once: a message, a wake and a launch. What it takes beyond that is
the switch."""

LOOKS_AT_REST = 20
"""Where nobody has worked since the last look the next one is so many slices away: who comes back meanwhile is let in
already, or says so."""


class Openings(Grants):
    """Several may be in at once. Whoever is, is said by the gates; here is who has been told so."""

    def __init__(self, settings: Settings, gates: Gates, numbers: Numbers, hand_overs: HandOvers) -> None:
        super().__init__(settings, numbers, hand_overs)
        self.gates = gates
        self.closing = False
        """Everybody was called back, and it is turns once all have drained."""
        self._contenders: list[Contender] = []
        self._look_ns = 0
        self._ending: Contender | None = (
            None  # drains since before several were let in, and may say so in its page alone
        )

    def begin(self, contenders: Iterable[Contender], longest_ns: int, now_ns: int) -> None:
        """Lets several in from now on; the longest turn lately was so long. Holders go on, drains are waited for."""
        self._contenders = list(contenders)
        self._now_ns = self._look_ns = now_ns
        self._tell_switch()
        self.gates.begin([contender.gate for contender in self._contenders], longest_ns, now_ns)
        self._ending, self.closing = None, False
        for contender in self._contenders:
            if contender.phase is ENDING:
                self._ending = contender
            contender.phase = BECOMES.get(contender.phase, contender.phase)
            contender.held_from_ns = now_ns
            contender.told_cap_ns = 0
            if contender.phase is HOLDING:
                contender.end_wait(now_ns)
            if contender.phase is not IDLE:
                gate = contender.gate
                gate.wake(now_ns)
                if self.gates.switch_ns > DEAR_NS:
                    # Where sharing may not pay, one is to see soon whether it has less than turns gave it.
                    gate.demand.used = max(gate.demand.used * min(1, gate.demand.usual), gate.had_by_turns)

    def close_all(self) -> bool:
        """Calls everybody back, and lets nobody in any more; whether all have drained. Who had a turn while what others
        queued still runs would take their time for its own."""
        self.closing = True
        for contender in self._contenders:
            if contender.phase is HOLDING:
                self._revoke(contender)
        return all(contender.phase is not DRAINING for contender in self._contenders)

    def end(self) -> None:
        """All have drained: nobody is told of others any more."""
        for contender in self._contenders:
            contender.told_cap_ns, contender.told_tells = 0, False
        self._contenders.clear()

    def add(self, contender: Contender) -> None:
        """Takes in one that came."""
        self._contenders.append(contender)
        self.gates.add(contender.gate)

    def remove(self, contender: Contender) -> None:
        """One is gone."""
        self._contenders.remove(contender)
        self.gates.remove(contender.gate)

    @property
    def pays(self) -> bool:
        """Whether there is somebody for whom several are let in: one that leaves gaps, and another that has work."""
        return self.gates.shared and not self.gates.in_turns

    def ending(self) -> str | None:
        """Who was about to drain when several were let in, while it still does."""
        ending = self._ending
        return ending.id if ending is not None and ending.phase is DRAINING else None

    def known_end_ns(self) -> int:
        """Gates may be closed at any time."""
        return 0

    def settle(self, now_ns: int) -> None:
        """Charges what the pages say was used since the last event."""
        if now_ns <= self._now_ns:
            return
        self.gates.settle(now_ns)
        for contender in self._contenders:
            gate = contender.gate
            if gate.charged_ns:
                contender.window.add_used(self._now_ns, now_ns, gate.used_ns, gate.charged_ns)
        self._now_ns = now_ns

    def take(self) -> list[Command]:
        """Opens and closes gates, and returns what is to be done since the last call."""
        self._look(self._now_ns >= self._look_ns)
        return self.give_commands()

    def ready(self, contender: Contender) -> None:
        """The contender has work and its gates are closed."""
        if contender.wait_from_ns < 0:
            contender.wait_from_ns = self._now_ns
        contender.phase = WAITING

    def woke(self, contender: Contender) -> None:
        """The contender was made ready after it had had no work: the look that follows sees it."""

    def released(self, contender: Contender, returns: bool) -> None:
        """A client of an allocation whose gates are open has drained or is gone."""
        if contender.open_clients:
            if contender.phase is HOLDING and contender.wanting_clients:
                self.admit(contender)
            return
        if contender.phase is not HOLDING:
            self._learn_drain(contender)
        if contender.wanting_clients:
            self.ready(contender)
        else:
            self.sleep(contender)

    def sleep(self, contender: Contender) -> None:
        """The contender has no work, or its gate would be open."""
        contender.end_wait(self._now_ns)
        contender.drained_ns = -1
        contender.phase = IDLE

    def report(self, contender: Contender, client: Client, gpu_ns: int, now_ns: int) -> None:
        """A client says what GPU time it used: its allocation is charged by the pages all the same."""
        client.reported_ns = now_ns

    def note_held(self, contender: Contender) -> None:
        """Leaves the contender's window as it was settled."""

    def contends(self, contender: Contender) -> bool:
        """Others are in, or may come in."""
        return True

    def lag_ns(self, contender: Contender) -> int:
        """GPU time, and idle time that was kept for it, that it is behind or ahead of its part."""
        return contender.gate.lag_ns

    def foresees(self, contender: Contender) -> None:
        """Nobody is let in ahead of time here, but it is waited for."""
        foretold_ns = contender.drained_at_ns()
        if foretold_ns:
            contender.foretold_ns = foretold_ns
            contender.lease_end_ns = max(contender.lease_end_ns, self._lease_end_ns(contender))

    def compete_again(self, contender: Contender) -> None:
        """A launch waits at the gate of one whose drain is waited for no more."""
        self._forgive(contender)
        self.ready(contender)

    def tick(self) -> None:
        """Looks after drains; the gates are looked at when what is to be done is taken."""
        for contender in self._contenders:
            if contender.phase is DRAINING:
                self._look_after(contender)

    def signal(self) -> None:
        """All know that they have company."""

    def deadline_ns(self) -> int | None:
        """When the next whole look is due, or a drain must be looked after."""
        at_ns = None if self.closing else self._look_ns
        for contender in self._contenders:
            if contender.phase is DRAINING:
                look_ns = contender.look_ns()
                at_ns = look_ns if at_ns is None else min(at_ns, look_ns)
        return at_ns

    def _look(self, whole: bool) -> None:
        for contender in self._contenders:
            gate, phase = contender.gate, contender.phase
            gate.open = phase is HOLDING
            gate.demand.waits = contender.wanting_clients > 0 and phase is not HOLDING
            gate.demand.queued = phase is DRAINING or (phase is HOLDING and gate.demand.queued)
            if phase is DRAINING and contender.told_tells and not contender.latency:
                # It was heavy when it was called back. Its bucket has filled since, but it has not drained.
                gate.heavy = True
        self.gates.look(self._now_ns, whole)
        if whole:
            self._tell_switch()
            self._look_ns = self.gates.look_ns(self._now_ns)
            if not self.gates.worked:
                self._look_ns += LOOKS_AT_REST * self._settings.slice_ns
        # Who drains a turn knows nothing of others, and would take their time for its own.
        turn_drains = any(each.phase is DRAINING and not each.told_cap_ns for each in self._contenders)
        for contender in self._contenders:
            if contender.phase is HOLDING:
                self._tell(contender)
            elif contender.phase is WAITING or contender.phase is THROTTLED:
                self._let_in(contender, contender.gate.open and not turn_drains)

    def _tell(self, contender: Contender) -> None:
        gate = contender.gate
        if not gate.open:
            self._revoke(contender)
        elif contender.told_cap_ns != gate.cap_ns or contender.told_tells != gate.tells:
            self._note_told(contender)
            self._out.append(Contend(contender.id, contender.number, True))

    def _let_in(self, contender: Contender, may: bool) -> None:
        if not may:
            throttled = throttled_until_ns(contender, self._settings) > self._now_ns
            contender.phase = THROTTLED if throttled else WAITING
            return
        contender.phase = HOLDING
        contender.end_wait(self._now_ns)
        contender.grant(self._numbers.next(), self._now_ns, self._now_ns)
        self._note_told(contender)
        self._out.append(Grant(contender.id, contender.number, True))

    def _tell_switch(self) -> None:
        self.gates.switch_ns = max(0, self.hand_overs.usual_ns - WAY_NS)

    def _note_told(self, contender: Contender) -> None:
        contender.told_cap_ns = contender.gate.cap_ns
        contender.told_tells = contender.gate.tells

    def _revoke(self, contender: Contender) -> None:
        contender.phase = DRAINING
        super()._revoke(contender)
