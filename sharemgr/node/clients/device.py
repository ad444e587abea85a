"""One device's arbiter at work: gives it events, and writes its decisions into the gates of the clients."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from edgeshare.contract.units import NS_PER_S
from sharemgr.node.clients.budget import Part
from sharemgr.node.clients.timer import DeadlineTimer
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.turns.account import Account, Reader, moment_of
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Accuse, Check, Command, Prolong, Revoke
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.mode import SEEN_NS
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.slices.ends import Ends

TOLD_NS = NS_PER_S
"""A driver tells of the second before it is asked at most (NVML API Reference, nvmlDeviceGetUtilizationRates): pages
that are read later than so long after that tell of another one."""

ALONE_PAGES = 2
"""What a page costs of how often pages may be read where those of one allocation alone are, at what it says: that tells
how it uses its turns, and nothing is due by it."""


class Gates(Protocol):
    """The gates of all clients of one allocation."""

    def open_gates(self, number: int, contended: bool, now_ns: int, free_at_ns: int, ends_at_ns: int) -> None:
        """Lets them launch under this grant, from when the device is free of what others queued. It is not called back
        before it ends (0: unknown)."""

    def share_gates(self, tells: bool, cap_ns: int) -> None:
        """What ``open_gates`` says from now on: others are let in, too, so that no more than ``cap_ns`` may be queued
        (0: they are not); ``tells``: who has drained gives back at once."""

    def used(self, now_ns: int, charges: bool) -> Use:
        """What their pages say since this was last called; ``charges``: they are charged by it, and not by records."""

    def unheard_ns(self) -> int:
        """GPU time of its clients that no record has told of yet."""

    def prolong_gates(self, ends_at_ns: int) -> None:
        """Moves that end."""

    def close_gates(self) -> None:
        """Calls the grant back."""

    def foretold(self) -> Iterable[tuple[int, int]]:
        """Of each client that says so: its id, and when it thinks it will have drained."""

    def promise(self, looks_at_ns: int) -> None:
        """Says that ``hear`` is called then at the latest."""

    def hear(self, now_ns: int) -> None:
        """Takes in what its clients gave back without sending it."""

    def stopped(self) -> Collection[int]:
        """The clients whose processes are stopped now."""

    def accuse(self, told_ns: int, used_ns: int, now_ns: int) -> None:
        """Says that its pages told of other GPU time than the driver did of its processes."""


class DeviceArbiter:
    """Grants the slices of one device. Every method takes the time of its event on the monotonic clock.

    All of it runs in the event loop's thread, right in the callback that read a client's record: what
    lies between the end of one client's work and the begin of the next one's is this.
    """

    def __init__(
        self, loop: Loop, settings: Settings, ends: Ends, rule: Rule, readers: list[Reader], pages: Part
    ) -> None:
        """``readers`` are told what changes from when they are in that list until they are not; ``pages``: how often
        those of all its clients may be read."""
        self._arbiter = Arbiter(settings, ends, rule)
        self._readers = readers
        self._pages = pages
        self._pages_of: dict[str, int] = {}  # by allocation: those of how many clients were read last
        self.exclusive = settings.exclusive
        """Whether it lets one process in at a time."""
        self._gates: dict[str, Gates] = {}
        self._ending: str | None = None  # who drains while the next is granted already …
        self._unheard: Gates | None = None  # … and may have given back since without a word
        self._hearing = False
        self._reads_all = False  # all pages were read before this event
        self._reads_at_ns = 0  # time stands until they can be read then; 0: it does not
        self._looks_at_ns = 0
        self._now_ns = 0  # of the last event
        self._seen_at_ns = 0  # how busy the device was; 0: never yet
        self.timer = DeadlineTimer(loop, self._tick)

    def close(self) -> None:
        """Grants nothing more."""
        self.timer.close()

    def add(self, allocation_id: str, share: Share, gates: Gates, now_ns: int) -> None:
        """From now on the allocation takes part."""
        now_ns = self._hear(now_ns)
        self._gates[allocation_id] = gates
        self._perform(self._arbiter.add(allocation_id, share, now_ns), now_ns)

    def update(self, allocation_id: str, share: Share, now_ns: int) -> None:
        """Changes its limit or class."""
        self._perform(self._arbiter.update(allocation_id, share, self._hear(now_ns)), now_ns)

    def remove(self, allocation_id: str, now_ns: int) -> None:
        """The allocation takes part no more: its clients are gone."""
        self._perform(self._arbiter.remove(allocation_id, self._hear(now_ns)), now_ns)
        del self._gates[allocation_id]
        self._pages_of.pop(allocation_id, None)
        for reader in self._readers:
            reader.told.pop(allocation_id, None)
            reader.take(allocation_id, None, self._now_ns)

    def join(self, allocation_id: str, client_id: int, beside: bool, now_ns: int) -> None:
        """A client came; ``beside``: its pages say what it uses."""
        self._perform(self._arbiter.join(allocation_id, client_id, self._hear(now_ns), beside), now_ns)

    def gone(self, allocation_id: str, client_id: int, now_ns: int) -> None:
        """A client left or died."""
        self._perform(self._arbiter.gone(allocation_id, client_id, self._hear(now_ns)), now_ns)

    def request(self, allocation_id: str, client_id: int, now_ns: int) -> None:
        """A launch of a client waits at its closed gate."""
        now_ns = self._hear(now_ns)
        self._read(allocation_id, now_ns)
        self._perform(self._arbiter.request(allocation_id, client_id, now_ns), now_ns)

    def release(self, allocation_id: str, client_id: int, number: int, gpu_ns: int, follows: bool, now_ns: int) -> None:
        """A client drained its part of grant ``number``; heard of later, not before the last event."""
        now_ns = self._hear(now_ns)
        self._read(allocation_id, now_ns)
        commands = self._arbiter.release(allocation_id, client_id, number, gpu_ns, follows, now_ns)
        self._perform(commands, now_ns)

    def draining(self, allocation_id: str, client_id: int, number: int, ends_at_ns: int, now_ns: int) -> None:
        """A client says when its part of grant ``number``, which was called back, will have drained."""
        now_ns = self._hear(now_ns)
        self._perform(self._arbiter.draining(allocation_id, client_id, number, ends_at_ns, now_ns), now_ns)

    def usage(self, allocation_id: str, client_id: int, number: int, gpu_ns: int, now_ns: int) -> None:
        """GPU time that a client used under grant ``number`` so far."""
        now_ns = self._hear(now_ns)
        self._perform(self._arbiter.usage(allocation_id, client_id, number, gpu_ns, now_ns), now_ns)

    def see(
        self,
        busy_percent: int,
        used_percent: Mapping[str, int] | None,
        asked_at_ns: int,
        clock: Callable[[], int],
    ) -> None:
        """How busy the device is, as its driver says, which was asked at that time, and what of that the processes of
        each allocation used; None: it does not say.

        ``clock`` gives the time. A manager that was stopped on the way does not know of which time the pages tell that
        it read, and what its driver said of another time is held against nobody.
        """
        now_ns = self._hear(clock(), must=True)
        if not self._reads_all:
            self._read_all(now_ns)
        self._now_ns = now_ns = max(now_ns, clock())
        elapsed_ns, self._seen_at_ns = now_ns - (self._seen_at_ns or now_ns), now_ns
        busy_ns, used_ns = None, None
        if elapsed_ns <= SEEN_NS and now_ns - asked_at_ns <= TOLD_NS:
            busy_ns = elapsed_ns * busy_percent // 100
            if used_percent is not None:
                used_ns = {each: elapsed_ns * percent // 100 for each, percent in used_percent.items()}
        self._perform(self._arbiter.see(busy_ns, now_ns, used_ns), now_ns)

    def hand_over(self, allocation_id: str, hand_over_ns: int) -> None:
        """A client says how long the device usually takes to come to it; 0: it does not know."""
        self._arbiter.hand_over(allocation_id, hand_over_ns)

    def holds(self, allocation_id: str, client_id: int) -> bool:
        """Whether the client is one that the grant is of."""
        return self._arbiter.holds(allocation_id, client_id)

    def waiting(self) -> list[str]:
        """The allocations that wait for a slice."""
        return self._arbiter.waiting()

    def account(self, allocation_id: str, now_ns: int) -> Account:
        """What the allocation had within the window."""
        account = self._arbiter.account(allocation_id, self._hear(now_ns))
        if not account.beside and account.holding_ns:
            unheard_ns = min(self._gates[allocation_id].unheard_ns(), account.holding_ns)
            account = replace(account, gpu_ns=account.gpu_ns + unheard_ns, all_gpu_ns=account.all_gpu_ns + unheard_ns)
        # What was heard of may have brought a deadline with it.
        self._perform([], now_ns)
        return account

    def tell(self) -> None:
        """Tells those who follow its turns what they do not know of how it has been since the last event."""
        beside = self._arbiter.beside
        for reader in self._readers:
            told = reader.told
            for contender in self._arbiter.contenders.values():
                before = told.get(contender.id)
                moment = moment_of(contender, beside, before)
                if moment is not before:
                    reader.take(contender.id, moment, self._now_ns)
                    told[contender.id] = moment

    def _tick(self, now_ns: int) -> None:
        self._perform(self._arbiter.tick(self._hear(now_ns)), now_ns)

    def _hear(self, now_ns: int, must: bool = False) -> int:
        """Before anything else happens at a time: takes in what was given back until then. Returns the time, which is
        that of the last event where this one was heard of late, or where no more pages may be read for a moment, unless
        they ``must``."""
        if self._unheard is not None and not self._hearing:
            self._hearing = True
            self._unheard.hear(now_ns)
            self._hearing = False
        self._reads_all, self._reads_at_ns = self._arbiter.reads_all, 0
        if self._reads_all and not must and (wait_ns := self._pages.wait_ns(now_ns)):
            self._reads_all = False
            if self._arbiter.beside:
                # All that went by is charged to somebody, and it is not known yet to whom.
                self._reads_at_ns = now_ns + wait_ns
                return self._now_ns
        self._now_ns = now_ns = max(self._now_ns, now_ns)
        if self._reads_all:
            self._read_all(now_ns)
        return now_ns

    def _read_all(self, now_ns: int) -> None:
        arbiter = self._arbiter
        pages = 0
        for allocation_id, gates in self._gates.items():
            if not arbiter.rests(allocation_id):
                use = gates.used(now_ns, arbiter.beside)
                pages += use.pages
                arbiter.read(allocation_id, use, now_ns)
        self._pages.spend(now_ns, pages)

    def _read(self, allocation_id: str, now_ns: int) -> None:
        """Of the allocation that an event is of alone, where all are not read. Of one that has several clients, only
        where more pages may be read: those of one client cost no more than its record."""
        gates = self._gates.get(allocation_id)
        if gates is None or self._reads_all or self._reads_at_ns:
            return
        several = self._pages_of.get(allocation_id, 0) > 1
        if several and self._pages.wait_ns(now_ns):
            return
        use = gates.used(now_ns, charges=False)
        if several:
            self._pages.spend(now_ns, ALONE_PAGES * use.pages)
        self._pages_of[allocation_id] = use.pages
        self._arbiter.read(allocation_id, use, now_ns)

    def _perform(self, commands: list[Command], now_ns: int) -> None:
        arbiter = self._arbiter
        # What the arbiter answers meanwhile is performed after what it said before.
        for command in commands:
            allocation_id = command.allocation_id
            gates = self._gates[allocation_id]
            # Not a match statement: patterns of classes take a microsecond each.
            if type(command) is Revoke:
                gates.close_gates()
                for client_id, ends_at_ns in gates.foretold():
                    commands += arbiter.draining(allocation_id, client_id, command.number, ends_at_ns, now_ns)
            elif type(command) is Check:
                commands += arbiter.stopped(allocation_id, gates.stopped(), now_ns)
            elif type(command) is Prolong:
                gates.prolong_gates(arbiter.slice_end_ns())
            elif type(command) is Accuse:
                gates.accuse(command.told_ns, command.used_ns, now_ns)
            elif not isinstance(command, Revoke | Check | Prolong | Accuse):
                free_at_ns = arbiter.device_free_ns()
                gates.share_gates(*arbiter.queue_of(allocation_id))
                gates.open_gates(command.number, command.contended, now_ns, free_at_ns, arbiter.slice_end_ns())
        ending = arbiter.ending()
        if ending != self._ending:
            self._ending = ending
            self._unheard = None if ending is None else self._gates[ending]
            if self._unheard is not None:
                # Nobody waits for its RELEASE, so it need not wake anybody.
                self._looks_at_ns = arbiter.turn_end_ns()
                self._unheard.promise(self._looks_at_ns)
        if self._readers:
            self.tell()
        if self._hearing:
            # What happens now comes after it.
            return
        deadline_ns = arbiter.deadline_ns()
        if self._unheard is not None and self._looks_at_ns > now_ns:
            deadline_ns = self._looks_at_ns if deadline_ns is None else min(deadline_ns, self._looks_at_ns)
        # After the gates: the timer's system call delays nobody then.
        self.timer.arm(None if deadline_ns is None else max(deadline_ns, self._reads_at_ns))
