"""One allocation on one device, as the arbiter sees it: its phase, its clients, what it was granted and used."""

from collections.abc import Collection

from sharemgr.node.turns.commands import MAX_NUMBER
from sharemgr.node.turns.drains import Drains
from sharemgr.node.turns.gate import Gate
from sharemgr.node.turns.phases import HOLDING, IDLE, OVERLAPPING
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.limit import charge_limit
from sharemgr.node.turns.share.standing import Standing
from sharemgr.node.turns.window import Window


class Client:
    """One client. `opened` is the number of the grant for which it owes a release, 0 while there is none."""

    __slots__ = ("asked", "asked_at", "beside", "ends_at_ns", "given_up", "opened", "reported_ns", "seen", "wants")

    def __init__(self, beside: bool) -> None:
        self.beside = beside  # it can be let in beside others
        self.seen = False  # it has asked at least once
        self.wants = False  # it waits at its closed gate
        self.asked_at = 0  # how many had asked before
        self.opened = 0
        self.given_up = 0  # the number of the last grant, if it owed a release and takes part again without it
        self.asked = False  # its gate is open because it asked, not because another client did
        self.reported_ns = 0
        self.ends_at_ns = 0  # when it expects to have drained; 0: it did not say


class Contender(Standing):
    """An allocation's standing, and the state of its grant."""

    __slots__ = (
        "asking_clients",
        "asks",
        "before",
        "beside_ns",
        "charged_ns",
        "clients",
        "drained_ns",
        "drains",
        "exclusive",
        "foretold_ns",
        "gate",
        "gpu_ns",
        "granted_ns",
        "grants",
        "handed_over",
        "held_from_ns",
        "id",
        "late_ns",
        "lease_end_ns",
        "number",
        "open_clients",
        "overruns",
        "owes_ns",
        "paged_ns",
        "paid_ns",
        "passed_ns",
        "phase",
        "rests",
        "revoked_ns",
        "stood_still_ns",
        "timer_ns",
        "told_cap_ns",
        "told_tells",
        "unheard_ns",
        "wait_from_ns",
        "wanting_clients",
        "window",
    )

    def __init__(self, allocation_id: str, share: Share, settings: Settings, now_ns: int) -> None:
        super().__init__(share, settings, now_ns)
        self.id = allocation_id
        self.gate = Gate(self, settings)
        self.told_cap_ns = 0  # what its clients were told of their queue while others are let in, too; 0: nothing
        self.told_tells = False
        self.exclusive = settings.exclusive
        self.asks = 0  # how often clients have begun to wait
        self.phase = IDLE
        self.clients: dict[int, Client] = {}
        self.wanting_clients = 0  # how many wait at a closed gate
        self.open_clients = 0  # how many owe a release
        self.asking_clients = 0  # how many of these asked
        self.number = 0  # of the last grant
        self.granted_ns = 0
        self.gpu_ns = 0  # reported since the grant
        self.unheard_ns = 0  # how much may have been used before, of which nothing was reported: a drain was given up
        self.paid_ns = 0  # … for which it was charged then
        self.paged_ns = 0  # used since, as its clients' pages say, and not reported
        self.rests = False  # they say that a launch waits, and nothing else, and said so before
        self.charged_ns = 0  # held time that it was charged for since the grant, …
        self.beside_ns = 0  # … in which others may have run whose drains were given up
        self.stood_still_ns = 0  # for so long the manager did since the grant: what was used then is of no limit
        self.handed_over = False  # before that grant the device was another's, …
        self.before: Contender | None = None  # … which had not drained yet
        self.owes_ns = 0  # for a turn that ended early for it, once it has had its own
        self.held_from_ns = 0  # what was held before is in the window already
        self.revoked_ns = 0
        self.lease_end_ns = 0
        self.foretold_ns = 0  # when it said, while it drains, that it will have drained; 0: it did not
        self.passed_ns = 0  # the first such time that passed before it had; 0: none did
        self.late_ns = 0  # when to look next whether it is stopped, while it drains
        self.drains = Drains(settings)
        self.timer_ns = -1  # when a tick must look at it again; what for, its phase says
        self.drained_ns = -1  # since when it has been thinking, until it comes back
        self.wait_from_ns = -1
        self.grants = 0
        self.overruns = 0  # drains that were not waited for to their end
        self.window = Window(settings.window_ns, now_ns)

    def want(self, client: Client) -> None:
        """Notes that a client waits at its gate."""
        if not client.wants:
            client.wants = True
            client.asked_at = self.asks
            self.asks += 1
            self.wanting_clients += 1

    def unwant(self, client: Client) -> None:
        """Notes that a client waits no more."""
        if client.wants:
            client.wants = False
            self.wanting_clients -= 1

    def ask(self, client: Client) -> None:
        """Notes that a client whose gate is open has work."""
        if not client.asked:
            client.asked = True
            self.asking_clients += 1

    def grant(self, number: int, begin_ns: int, now_ns: int, runs_on: bool = False) -> None:
        """The contender is granted the device from a time on. ``runs_on``: a drain of it was given up, so that what it
        used until then may be reported later, and what it used before an earlier such grant still."""
        unheard_ns, paid_ns = begin_ns - self.granted_ns - self.gpu_ns, max(0, self.charged_ns - self.gpu_ns)
        self.unheard_ns = self.unheard_ns + unheard_ns if runs_on else 0
        self.paid_ns = self.paid_ns + paid_ns if runs_on else 0
        self.granted_ns = begin_ns
        self.beside_ns = 0
        self.stood_still_ns = self.stood_still_ns if runs_on else 0
        self.gpu_ns = self.charged_ns = 0
        self.grants += 1
        self.open(number, now_ns)

    def open(self, number: int, now_ns: int) -> None:
        """Counts all clients into the grant that have ever asked and are not in it yet; of an exclusive device the one
        that has waited longest."""
        self.number = number
        for client in self._next_ones():
            if client.seen and not client.opened:
                client.opened = number
                client.given_up = client.ends_at_ns = 0
                client.reported_ns = now_ns
                self.open_clients += 1
                if client.wants:
                    self.unwant(client)
                    self.ask(client)

    def _next_ones(self) -> Collection[Client]:
        if not self.exclusive:
            return self.clients.values()
        waiting = [client for client in self.clients.values() if client.wants]
        return [min(waiting, key=_asked_at)] if waiting else []

    def enter_turns(self, now_ns: int) -> None:
        """Turns begin while it has not drained: what it held and used before is accounted for."""
        self.held_from_ns = now_ns
        self.gpu_ns = self.charged_ns = self.unheard_ns = 0

    def leave_turns(self, now_ns: int) -> int:
        """Turns are taken no more: what it reports of its grant is not heard any more, so its pages say it. How much of
        that no held time was charged for, as ``report``."""
        used_ns = 0
        for client in self.clients.values():
            if client.opened:
                used_ns += self.report(client, self.paged_ns, now_ns)
                self.paged_ns = 0
        self.before, self.owes_ns = None, 0
        if self.phase is HOLDING:
            # Granted ahead of another's drain, it need not wait for that any more.
            self.granted_ns = min(self.granted_ns, now_ns)
            self.end_wait(now_ns)
        return used_ns

    def close(self, client: Client) -> None:
        """Counts a client out of the grant: it has drained, or is gone."""
        client.opened = 0
        self.open_clients -= 1
        if client.asked:
            client.asked = False
            self.asking_clients -= 1

    def is_of_grant(self, client: Client, number: int) -> bool:
        """Whether a number is of the grant that the client owes a release for, or of a later one of the same hold."""
        if number == client.opened:
            return number > 0
        if not client.opened or not 0 < number <= MAX_NUMBER:
            return False
        return (number - client.opened) % MAX_NUMBER <= (self.number - client.opened) % MAX_NUMBER

    def stopped(self, client_ids: Collection[int]) -> bool:
        """Whether all that owe a release are among these."""
        return all(not client.opened or client_id in client_ids for client_id, client in self.clients.items())

    @property
    def runs_on(self) -> bool:
        """Whether what it queued may still run though its drain is waited for no more."""
        return self.phase is OVERLAPPING or any(client.given_up for client in self.clients.values())

    def look_ns(self) -> int:
        """When one must look after its drain at the latest."""
        return min(self.late_ns, self.lease_end_ns)

    def drained_at_ns(self) -> int:
        """When all its clients expect to have drained; 0 while one has not said so."""
        at_ns = 0
        for client in self.clients.values():
            if client.opened:
                if not client.ends_at_ns:
                    return 0
                at_ns = max(at_ns, client.ends_at_ns)
        return at_ns

    def report(self, client: Client, gpu_ns: int, now_ns: int) -> int:
        """Takes in the GPU time that a client says it used; together they never used more than the grant lasted, and
        what may have run on after the one before it. How much of it no held time was charged for: it ran when its drain
        was waited for no more."""
        granted_gpu_ns = max(0, min(gpu_ns, now_ns - self.granted_ns - self.gpu_ns))
        unheard_ns = max(0, min(gpu_ns - granted_gpu_ns, self.unheard_ns))
        gpu_ns = granted_gpu_ns + unheard_ns
        if gpu_ns > 0:
            self.gpu_ns += granted_gpu_ns
            self.unheard_ns -= unheard_ns
            nobodys_ns = min(gpu_ns, self.stood_still_ns)
            self.stood_still_ns -= nobodys_ns
            charge_limit(self, gpu_ns - nobodys_ns)
            self.window.add_gpu(client.reported_ns, now_ns, gpu_ns)
        client.reported_ns = now_ns
        paid_ns = min(unheard_ns, self.paid_ns)
        self.paid_ns -= paid_ns
        late_ns = max(0, self.gpu_ns - self.charged_ns) if client.given_up else 0
        self.charged_ns += late_ns
        return late_ns + unheard_ns - paid_ns

    def end_wait(self, at_ns: int) -> None:
        """The contender waits no more, where it did: the device was free for it, or it left."""
        if self.wait_from_ns >= 0:
            self.window.add_wait(self.wait_from_ns, at_ns)
            self.wait_from_ns = -1

    def waiting_ns(self, now_ns: int) -> int:
        """How long it has been waiting now."""
        return now_ns - self.wait_from_ns if self.wait_from_ns >= 0 else 0

    def note_held(self, now_ns: int) -> None:
        """Brings the window up to date while it is charged."""
        if now_ns > self.held_from_ns:
            self.window.add_held(self.held_from_ns, now_ns)
            self.held_from_ns = now_ns


def _asked_at(client: Client) -> int:
    return client.asked_at
