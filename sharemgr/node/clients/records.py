"""What a client that has joined says, record by record, and what it leaves in its hint page."""

from cuda_hook import wire
from cuda_hook.gate import GRANT_NUMBER_MAX, GatePages
from sharemgr.node.clients.memory_records import MemoryRecords
from sharemgr.node.clients.offences import Offence
from sharemgr.node.clients.terms import Terms
from sharemgr.node.clients.usage import Claims, Counters

OFFENCE_RECORDS = 20
"""What a record that is good for nothing costs of the records that may be sent: nobody needs many of them."""

FLAWS = {
    wire.Flaw.SHORT: Offence.TRUNCATED,
    wire.Flaw.UNKNOWN: Offence.UNKNOWN,
    wire.Flaw.FIELD: Offence.MALFORMED,
}


class Records:
    """One client's. They lie in the allocation's inbox, one at a time."""

    __slots__ = ("_beside", "_claims", "_client_id", "_inbox", "_left", "_memory", "_sent", "_terms", "counters")

    def __init__(self, client_id: int, terms: Terms, memory: MemoryRecords, now_ns: int) -> None:
        self._client_id = client_id
        self._terms = terms
        self._inbox = terms.inbox
        self._memory = memory
        self._claims = Claims()
        self.counters = Counters(now_ns)
        """What its pages say that it used."""
        self._beside = False  # others may be let in beside it
        # The grants that it gave back last, by a record and without one.
        self._sent = 0
        self._left = 0

    def opened(self, number: int, granted_at_ns: int, beside: bool) -> None:
        """The client's gate was opened under a number; ``beside``: others may be let in beside it."""
        if self._claims.shown(number, granted_at_ns):
            self.counters.opened(granted_at_ns)
        self._beside = beside

    def handle(self, kind: int, pages: GatePages, now_ns: int) -> bool:
        """Takes in the record in the inbox; False where it is a HELLO, which comes once. Raises MalformedRecord, and
        InvalidRequest for what cannot be true."""
        inbox, terms = self._inbox, self._terms
        if kind == wire.RELEASE:
            # One that was left too late for a look is sent as well.
            number = inbox.header.number
            if not self._is_over(number):
                self._sent = number
                self._release(pages, now_ns)
        elif kind == wire.DRAINING:
            draining = inbox.draining
            number = draining.header.number
            if not self._is_over(number):
                self._check_number(number, now_ns)
            terms.device.draining(terms.allocation_id, self._client_id, number, draining.ends_at_ns, now_ns)
        elif kind == wire.REQUEST:
            terms.device.request(terms.allocation_id, self._client_id, now_ns)
        elif kind == wire.USAGE:
            usage = inbox.usage
            number = usage.header.number
            if not self._is_over(number):
                self._check_usage(number, usage.gpu_ns, now_ns)
            gpu_ns = self.counters.take_in(usage.gpu_ns)
            terms.device.usage(terms.allocation_id, self._client_id, number, gpu_ns, now_ns)
        else:
            return self._memory.handle(inbox.record(kind), now_ns)
        return True

    def hear(self, pages: GatePages, now_ns: int) -> None:
        """Takes in a RELEASE that it left in its hint page, as of when it says that it left it. Raises
        MalformedRecord."""
        drained_at_ns = pages.left(self._left, self._inbox.release)
        if drained_at_ns is None:
            return
        self._left = self._inbox.header.number
        if self._left != self._sent:
            self._inbox.kind(wire.RELEASE_BYTES)
            self._release(pages, min(drained_at_ns, now_ns))

    def flaw(self, flaw: wire.Flaw, size_bytes: int) -> Offence:
        """What a record of that size is that could not be parsed."""
        if size_bytes > wire.RECORD_BYTES_MAX:
            return Offence.OVERSIZED
        if flaw is not wire.Flaw.SIZE:
            return FLAWS[flaw]
        return Offence.OVERSIZED if self._inbox.exceeds(size_bytes) else Offence.TRUNCATED

    def _release(self, pages: GatePages, now_ns: int) -> None:
        """Handles the RELEASE in the inbox. Others may be heard meanwhile, by way of the same inbox."""
        release = self._inbox.release
        number, follows = release.header.number, release.flags & 1 == 1
        if self._check_usage(number, release.gpu_ns, now_ns):
            self._claims.released()
        terms = self._terms
        terms.device.hand_over(terms.allocation_id, pages.hinted_hand_over_ns())
        gpu_ns = self.counters.take_in(release.gpu_ns)
        terms.device.release(terms.allocation_id, self._client_id, number, gpu_ns, follows, now_ns)

    def _is_over(self, number: int) -> bool:
        """Whether it is of the grant that it left in its page last, or of one before: what it said until then is read
        later where the manager stood still meanwhile."""
        return self._left > 0 and (self._left - number) % GRANT_NUMBER_MAX < GRANT_NUMBER_MAX // 2

    def _check_number(self, number: int, now_ns: int) -> bool:
        """Whether its gate has shown this number since it released; one that it has not is counted, and ignored by
        the arbiter."""
        if self._claims.has_shown(number):
            return True
        self._slight(Offence.STALE, now_ns)
        return False

    def _check_usage(self, number: int, gpu_ns: int, now_ns: int) -> bool:
        """Counts a lie too, which the arbiter clamps; whether the number was good. Of one that others are let in beside
        the pages say what it uses, and the device how much there was."""
        if not self._check_number(number, now_ns):
            return False
        if not self._beside and self._claims.are_false(gpu_ns, now_ns):
            self._slight(Offence.FALSE_USAGE, now_ns)
        return True

    def _slight(self, kind: Offence, now_ns: int) -> None:
        """Counts an offence that does no harm, so that it only costs records."""
        self._terms.offences.count(kind)
        self._terms.records.spend(now_ns, OFFENCE_RECORDS)
