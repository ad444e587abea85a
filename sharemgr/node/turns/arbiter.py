"""Grants one device: a state machine of what happened and when, which answers with commands. It takes exclusive turns
(slices.py), or lets several in at once where one of them leaves gaps (openings.py). Between the two all drain.

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

from collections.abc import Collection, Mapping

from edgeshare.contract.errors import AlreadyExists, NotFound
from sharemgr.node.turns.account import Account, account_of
from sharemgr.node.turns.commands import Command
from sharemgr.node.turns.contender import Client, Contender
from sharemgr.node.turns.demand import Use
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.hand_overs import HandOvers
from sharemgr.node.turns.mode import Mode
from sharemgr.node.turns.phases import DRAINING, ENDING, HOLDING, IDLE, OVERLAPPING, THINKING, THROTTLED, WAITING
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.limit import change_limit
from sharemgr.node.turns.slices.ends import Ends


class Arbiter:
    """The arbiter of one device. Times are integer ns; an event's time is never before the last one's."""

    def __init__(self, settings: Settings | None = None, ends: Ends | None = None, rule: Rule | None = None) -> None:
        """``ends`` is what the arbiters of one node have in common."""
        self._settings = settings = settings or Settings()
        self._hand_overs = HandOvers(settings)
        self._mode = Mode(settings, ends or Ends(), rule or Rule(), self._hand_overs)
        self.contenders: dict[str, Contender] = {}  # by id, to be looked at only

    @property
    def beside(self) -> bool:
        """Whether several are let in at once."""
        return self._mode.beside

    def add(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Adds an allocation without clients. Raises AlreadyExists."""
        if allocation_id in self.contenders:
            raise AlreadyExists(f"allocation {allocation_id} is on this device already: remove it first")
        contender = self.contenders[allocation_id] = Contender(allocation_id, share, self._settings, now_ns)
        if self._mode.beside:
            self._mode.grants.settle(now_ns)
            self._mode.openings.add(contender)
        return []

    def update(self, allocation_id: str, share: Share, now_ns: int) -> list[Command]:
        """Changes an allocation's share; what it used and owes stays. Raises NotFound."""
        contender = self._known(allocation_id)
        self._mode.grants.settle(now_ns)
        if contender.clients:
            self._mode.slices.field.rivals.latency_present += share.latency - contender.latency
        contender.latency = share.latency
        change_limit(contender, share.limit_percent, now_ns)
        self._mode.slices.field.competition.change_request(contender, share.request_percent)
        if contender.phase is THROTTLED:
            self._mode.grants.ready(contender)
        self._mode.grants.signal()
        return self._take(now_ns)

    def remove(self, allocation_id: str, now_ns: int) -> list[Command]:
        """Removes an allocation and its clients; one that is not there is removed already."""
        contender = self.contenders.pop(allocation_id, None)
        if contender is None:
            return []
        self._mode.grants.settle(now_ns)
        self._mode.grants.close(contender)
        for client_id in list(contender.clients):
            self._take_out(contender, client_id, now_ns)
        self._mode.slices.device.forget(contender)
        self._hand_overs.forget(contender)
        if self._mode.beside:
            self._mode.openings.remove(contender)
        return self._take(now_ns)

    def join(self, allocation_id: str, client_id: int, now_ns: int, beside: bool = False) -> list[Command]:
        """Adds a client to an allocation; ``beside``: it can be let in beside others, and its pages say what it uses.
        Raises NotFound, AlreadyExists."""
        contender = self._known(allocation_id)
        if client_id in contender.clients:
            raise AlreadyExists(f"client {client_id} of allocation {allocation_id} is here already")
        self._mode.grants.settle(now_ns)
        if contender.latency and not contender.clients:
            self._mode.slices.field.rivals.latency_present += 1
        contender.clients[client_id] = Client(beside)
        self._mode.alone_clients += not beside
        self._mode.grants.signal()
        return self._take(now_ns)

    def gone(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """Takes out a client that left or died; what it held is free at once."""
        contender, client = self._find(allocation_id, client_id)
        if contender is None or client is None:
            return []
        self._mode.grants.settle(now_ns)
        self._take_out(contender, client_id, now_ns)
        return self._take(now_ns)

    def request(self, allocation_id: str, client_id: int, now_ns: int) -> list[Command]:
        """A launch of the client waits at the closed gate."""
        contender, client = self._find(allocation_id, client_id)
        if contender is None or client is None:
            return []
        self._mode.grants.settle(now_ns)
        client.seen = True
        if contender.phase is HOLDING and client.opened:
            contender.ask(client)
            return []
        contender.want(client)
        if contender.phase is HOLDING:
            if not contender.exclusive:
                self._mode.grants.admit(contender)
        elif contender.phase is OVERLAPPING:
            self._mode.grants.compete_again(contender)
        elif contender.phase is IDLE or contender.phase is THINKING:
            if contender.drained_ns >= 0:
                contender.learn_think(now_ns - contender.drained_ns, self._hand_overs.anticipation_ns)
                contender.drained_ns = -1
            self._mode.grants.ready(contender)
            self._mode.grants.woke(contender)
        return self._take(now_ns)

    def release(
        self, allocation_id: str, client_id: int, number: int, gpu_ns: int, follows: bool, now_ns: int
    ) -> list[Command]:
        """The client has drained; `follows`: a launch waits already. GPU time is that since its last report."""
        contender, client = self._find(allocation_id, client_id)
        if contender is None or client is None:
            return []
        if number and client.given_up == number:
            self._mode.grants.settle(now_ns)
            self._mode.grants.report(contender, client, gpu_ns, now_ns)
            self._mode.grants.drained_late(contender, client)
            return self.request(allocation_id, client_id, now_ns) if follows else []
        if not contender.is_of_grant(client, number):
            return []
        self._mode.grants.settle(now_ns)
        self._mode.grants.report(contender, client, gpu_ns, now_ns)
        contender.close(client)
        if follows:
            contender.want(client)
        self._mode.grants.released(contender, returns=True)
        return self._take(now_ns)

    def draining(self, allocation_id: str, client_id: int, number: int, ends_at_ns: int, now_ns: int) -> list[Command]:
        """The client says when what it queued under a grant that was called back will have drained."""
        contender, client = self._find(allocation_id, client_id)
        if contender is None or client is None or not contender.is_of_grant(client, number):
            return []
        if contender.phase is not DRAINING and contender.phase is not ENDING:
            # Foretold of a grant that goes on, it would be wrong by the time of the revoke.
            return []
        self._mode.grants.settle(now_ns)
        client.ends_at_ns = ends_at_ns
        self._mode.grants.foresees(contender)
        return self._take(now_ns)

    def stopped(self, allocation_id: str, client_ids: Collection[int], now_ns: int) -> list[Command]:
        """The answer to a Check: the processes of these clients are stopped."""
        contender = self.contenders.get(allocation_id)
        if contender is None:
            return []
        self._mode.grants.settle(now_ns)
        self._mode.grants.stopped(contender, client_ids)
        return self._take(now_ns)

    def usage(self, allocation_id: str, client_id: int, number: int, gpu_ns: int, now_ns: int) -> list[Command]:
        """GPU time of the client since its last report, while its grant lasts."""
        contender, client = self._find(allocation_id, client_id)
        if contender is not None and client is not None and contender.is_of_grant(client, number):
            self._mode.grants.report(contender, client, gpu_ns, now_ns)
        return []

    def hand_over(self, allocation_id: str, hand_over_ns: int) -> None:
        """A client says how long it usually takes from the device's falling free to its own work's begin."""
        contender = self.contenders.get(allocation_id)
        if contender is not None:
            self._hand_overs.tell(contender, hand_over_ns)

    def tick(self, now_ns: int) -> list[Command]:
        """Does what is due. Being called early is harmless."""
        self._mode.grants.settle(now_ns)
        self._mode.grants.tick()
        return self._take(now_ns)

    def read(self, allocation_id: str, use: Use, now_ns: int) -> None:
        """Takes in what the pages of an allocation's clients say at the time of the event that follows."""
        contender = self.contenders[allocation_id]
        contender.gate.demand.read(
            use.gpu_ns, use.idle_ns, use.undrained_ns, use.waits, use.queued, use.running_ns, now_ns=now_ns
        )
        contender.paged_ns = use.unheard_ns
        contender.rests = use.waits and not use.queued and use.gpu_ns == 0 and use.unheard_ns == 0
        self._mode.report(contender.gate, use.lies, now_ns)

    def rests(self, allocation_id: str) -> bool:
        """Whether the pages of an allocation's clients say what they said when they were read last: all of them are
        kept out, and nothing of theirs is queued."""
        contender = self.contenders[allocation_id]
        return contender.rests and (contender.phase is WAITING or contender.phase is THROTTLED)

    @property
    def reads_all(self) -> bool:
        """Whether the pages of all are to be read before an event, not only of those that it is of: several are let in,
        or may be from now on."""
        return self._mode.beside or any(each.gate.demand.seen_to_leave_gaps for each in self.contenders.values())

    def see(self, busy_ns: int | None, now_ns: int, used_ns: Mapping[str, int] | None = None) -> list[Command]:
        """How long the device was busy since this was last called, as its driver says, and what of that the processes
        of each allocation used; None: that is not known."""
        self._mode.grants.settle(now_ns)
        accusals = self._mode.see(self.contenders, busy_ns, used_ns, now_ns)
        return accusals + self._take(now_ns)

    def deadline_ns(self) -> int | None:
        """When tick must be called at the latest, unless something happens before; None: never."""
        return self._mode.grants.deadline_ns()

    def queue_of(self, allocation_id: str) -> tuple[bool, int]:
        """What the clients of an allocation are told while several are let in: whether they say so as soon as they have
        drained, and their queue's cap in ns."""
        contender = self.contenders[allocation_id]
        return contender.told_tells, contender.told_cap_ns

    def device_free_ns(self) -> int:
        """When what was queued before the present grant is done, as far as is known."""
        return self._mode.slices.device.free_ns()

    def slice_end_ns(self) -> int:
        """Before when the present grant will not be called back; 0 where it may be at any time."""
        return self._mode.grants.known_end_ns()

    def holds(self, allocation_id: str, client_id: int) -> bool:
        """Whether a client owes a release: of an exclusive device, whether it is the one that has it."""
        client = self._find(allocation_id, client_id)[1]
        return client is not None and client.opened > 0

    def waiting(self) -> list[str]:
        """The allocations that wait for a slice."""
        return [each.id for each in self.contenders.values() if each.phase is WAITING or each.wanting_clients]

    def ending(self) -> str | None:
        """The allocation whose successor is granted already while it drains."""
        return self._mode.grants.ending()

    def turn_end_ns(self) -> int:
        """When the present slice ends."""
        return self._mode.slices.field.slice_end_ns

    def account(self, allocation_id: str, now_ns: int) -> Account:
        """What the allocation has had. Raises NotFound."""
        contender = self._known(allocation_id)
        self._mode.grants.settle(now_ns)
        self._mode.grants.note_held(contender)
        return account_of(contender, self._mode.beside, self._mode.grants.lag_ns(contender), now_ns)

    def _take(self, now_ns: int) -> list[Command]:
        return self._mode.take(self.contenders.values(), now_ns)

    def _take_out(self, contender: Contender, client_id: int, now_ns: int) -> None:
        client = contender.clients.pop(client_id)
        self._mode.alone_clients -= not client.beside
        contender.unwant(client)
        if client.opened:
            # It can report no more. What it did since it last did counts in full: dying is no way round a limit.
            self._mode.grants.report(contender, client, now_ns - client.reported_ns, now_ns)
            contender.close(client)
            self._mode.grants.released(contender, returns=False)
        elif contender.phase is THINKING:
            if not contender.clients:
                self._mode.grants.sleep(contender)
        elif contender.phase in (WAITING, THROTTLED) and not contender.wanting_clients:
            self._mode.grants.sleep(contender)
        if contender.latency and not contender.clients:
            self._mode.slices.field.rivals.latency_present -= 1
            self._mode.grants.signal()

    def _find(self, allocation_id: str, client_id: int) -> tuple[Contender | None, Client | None]:
        contender = self.contenders.get(allocation_id)
        return contender, contender.clients.get(client_id) if contender is not None else None

    def _known(self, allocation_id: str) -> Contender:
        contender = self.contenders.get(allocation_id)
        if contender is None:
            raise NotFound(f"allocation {allocation_id} is not on this device: add it first")
        return contender
