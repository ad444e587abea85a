"""What grants of a device have in common, be they exclusive turns (slices.py) or beside each other (openings.py): their
numbers, and the drains of those that were called back."""

from abc import ABC, abstractmethod
from collections.abc import Collection

from edgeshare.contract.units import NS_PER_MS
from sharemgr.node.turns.commands import Check, Command, Grant, Numbers, Revoke
from sharemgr.node.turns.contender import Client, Contender
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.phases import DRAINING, ENDING, HOLDING, OVERLAPPING
from sharemgr.node.turns.settings import Settings

OVERDUE_NS = 10 * NS_PER_MS
"""How much longer than a full queue takes, or than was foretold, one waits for a drain before one looks whether its
processes are stopped. With kernels below this one never has to look; the others run within a slice and this of the
stop."""


class Grants(ABC):
    """Grants one device, moved on by an Arbiter: it calls settle, then what happened, then take."""

    def __init__(self, settings: Settings, numbers: Numbers, hand_overs: HandOvers) -> None:
        self._settings = settings
        self._numbers = numbers
        self.hand_overs = hand_overs
        self._now_ns = 0
        self._out: list[Command] = []

    @abstractmethod
    def settle(self, now_ns: int) -> None:
        """Charges the time since the last event, before anything is decided by it."""

    @abstractmethod
    def take(self) -> list[Command]:
        """Decides who is let in, and returns what is to be done since the last call."""

    @abstractmethod
    def ready(self, contender: Contender) -> None:
        """The contender has work and its gates are closed: it waits, or is throttled."""

    @abstractmethod
    def woke(self, contender: Contender) -> None:
        """The contender was made ready after it had had no work."""

    @abstractmethod
    def released(self, contender: Contender, returns: bool) -> None:
        """A client of an allocation whose gates are open has drained or is gone; `returns`: the last one to do so may
        be back in a moment."""

    @abstractmethod
    def sleep(self, contender: Contender) -> None:
        """The contender has no work and is not expected to have any in a moment."""

    @abstractmethod
    def report(self, contender: Contender, client: Client, gpu_ns: int, now_ns: int) -> None:
        """A client says what GPU time it used since it last did."""

    @abstractmethod
    def note_held(self, contender: Contender) -> None:
        """Brings its window up to date."""

    @abstractmethod
    def foresees(self, contender: Contender) -> None:
        """One that was called back says when it will have drained, or at what other time than it said."""

    @abstractmethod
    def compete_again(self, contender: Contender) -> None:
        """A launch waits at the gate of an allocation whose drain is waited for no more. What it queued may be waiting
        for that very launch, so it owes no release any more and takes part again."""

    @abstractmethod
    def tick(self) -> None:
        """Does what is due."""

    @abstractmethod
    def signal(self) -> None:
        """Tells a holder of the company that it has."""

    @abstractmethod
    def ending(self) -> str | None:
        """The allocation that is about to drain while the next one is granted already."""

    @abstractmethod
    def known_end_ns(self) -> int:
        """Before when whoever holds will not be called back; 0 where it may be at any time."""

    @abstractmethod
    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest; None: never."""

    @abstractmethod
    def lag_ns(self, contender: Contender) -> int:
        """Time of the device that it is behind (above 0) or ahead of (below 0) its part, while it competes; else 0."""

    def admit(self, contender: Contender) -> None:
        """A client came in while its allocation holds. The number is new, so that the client can tell it from the one
        that it released; the others may answer either."""
        contender.open(self._numbers.next(), self._now_ns)
        self._out.append(Grant(contender.id, contender.number, self.contends(contender)))

    @abstractmethod
    def contends(self, contender: Contender) -> bool:
        """Whether one that holds has company."""

    def give_commands(self) -> list[Command]:
        """What is to be done since the last call."""
        out, self._out = self._out, []
        return out

    def close(self, contender: Contender) -> None:
        """Calls its grant back, if it has one: whatever becomes of its clients then, nobody lets it in again."""
        if contender.phase is HOLDING:
            self._revoke(contender)

    def stopped(self, contender: Contender, client_ids: Collection[int]) -> None:
        """Processes of an allocation were seen stopped. A drain that only they owe is waited for no more: what they
        queued is bounded and runs out by itself."""
        if contender.phase in (DRAINING, ENDING) and contender.stopped(client_ids):
            self._give_up(contender)

    def drained_late(self, contender: Contender, client: Client) -> None:
        """One that takes part again has drained, before it was granted anew."""
        client.given_up = 0
        self._learn_drain(contender)

    def _give_up(self, contender: Contender) -> None:
        """Waits no more for the drain of one that drains or is about to; it is left to itself."""
        contender.phase = OVERLAPPING
        contender.overruns += 1
        contender.drains.give_up()
        if contender.wanting_clients:
            self.compete_again(contender)

    def _forgive(self, contender: Contender) -> None:
        """The contender's clients owe no release any more for the grant whose drain was waited for no longer."""
        for client in contender.clients.values():
            if client.opened:
                client.given_up = client.opened
                contender.close(client)

    def _revoke(self, contender: Contender) -> None:
        """Calls back its grant; from now on it is DRAINING."""
        contender.revoked_ns = self._now_ns
        contender.foretold_ns = contender.passed_ns = 0
        contender.lease_end_ns = self._lease_end_ns(contender)
        contender.late_ns = self._now_ns + self._settings.queue_cap_ns + OVERDUE_NS
        self._out.append(Revoke(contender.id, contender.number))

    def _lease_end_ns(self, contender: Contender) -> int:
        """Until when its drain is waited for."""
        foretold_ns = contender.foretold_ns - contender.revoked_ns
        expected_ns = self._settings.queue_cap_ns + contender.drains.expected_ns(foretold_ns)
        return contender.revoked_ns + expected_ns + self._settings.drain_grace_ns

    def _learn_drain(self, contender: Contender) -> None:
        """The contender has drained."""
        foretold_ns = contender.passed_ns or contender.foretold_ns
        late_ns = self._now_ns - foretold_ns if foretold_ns else 0
        contender.drains.learn(self._now_ns - contender.revoked_ns, late_ns)

    def _look_after(self, contender: Contender) -> None:
        """Gives up a drain that takes longer than one waits for it; of one that is late has somebody look whether its
        processes are stopped."""
        if contender.exclusive:
            # Nobody else could open the device: who has it keeps it until it gives it back.
            return
        if self._now_ns >= contender.lease_end_ns:
            self._give_up(contender)
        elif self._now_ns >= contender.late_ns:
            contender.late_ns = self._now_ns + 2 * OVERDUE_NS
            self._out.append(Check(contender.id))
