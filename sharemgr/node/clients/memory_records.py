"""What a client says of its memory, and the answers that wait for what the driver says."""

from collections.abc import Callable
from time import monotonic_ns

from cuda_hook import wire
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.clients.terms import Terms
from sharemgr.node.memory.entry import Verdict
from sharemgr.node.sockets.loop import Loop

REFUSAL_RECORDS = 8
"""What a refused reservation costs of the records that may be sent, and one more for each client of the allocation: of
each it is looked at what it said, and what it holds and does not use."""

ANSWER_RECORDS = 1
"""What an answer costs of them: to write one costs the manager about as much as to read one."""

PUT_OFF_NS = 400 * NS_PER_MS
"""So long a client's answers wait, at most and all together, for what the driver says that contexts take. A client
takes a manager for hung that answers nothing for a second (ES_ANSWER_MS in the hook's greeting.h), and its other
threads' questions wait behind each."""

PUT_OFF_APART_NS = 2000 * NS_PER_MS
"""From when a client's answers began to wait until they may do so again."""


class MemoryRecords:
    """One client's. At most one answer of it waits."""

    __slots__ = ("_client_id", "_hear_others", "_loop", "_put_off_at_ns", "_send", "_terms", "_unanswered")

    def __init__(
        self,
        client_id: int,
        terms: Terms,
        loop: Loop,
        send: Callable[[wire.ManagerRecord], None],
        hear_others: Callable[[], None],
    ) -> None:
        """``hear_others`` makes the allocation's other clients catch up."""
        self._client_id = client_id
        self._terms = terms
        self._loop = loop
        self._send: Callable[[wire.ManagerRecord], None] | None = send
        self._hear_others: Callable[[], None] | None = hear_others
        self._unanswered: wire.Reserve | None = None
        self._put_off_at_ns = -PUT_OFF_APART_NS  # when one waited first, of those that wait together

    @property
    def waits(self) -> bool:
        """Whether an answer waits for what the driver says."""
        return self._unanswered is not None

    def forget(self) -> None:
        """The client is gone: it needs no answer, and is no longer known here."""
        self._unanswered = self._send = self._hear_others = None

    def handle(self, record: wire.ClientRecord, now_ns: int) -> bool:
        """Takes a record in; False where it is not of memory. Raises InvalidRequest for what cannot be true."""
        memory = self._terms.memory
        if not isinstance(record, wire.Declare):
            memory.declared(self._client_id)
        match record:
            case wire.Reserve():
                self._asked(record, now_ns)
            case wire.Declare(size_bytes, device, wire.MemoryKind.PLAIN):
                memory.declare(self._client_id, device, size_bytes)
            case wire.Declare(_, device):
                memory.declare_context(self._client_id, device)
            case wire.Freed(size_bytes, device, wire.MemoryKind.PLAIN):
                memory.freed(self._client_id, device, size_bytes)
            case wire.Freed(_, device):
                memory.context_ended(self._client_id, device)
            case wire.MemoryQuery(number, device):
                info = memory.info(device)
                self._say(wire.MemoryInfo(number, info.cap_bytes, info.used_bytes), now_ns)
            case _:
                return False
        return True

    def answer(self, waits: bool = True) -> None:
        """Answers what waits for the driver, which has just been asked, where that is enough to go by; without
        ``waits`` in any case."""
        record, self._unanswered = self._unanswered, None
        if record is not None:
            self._answer(record, monotonic_ns(), waits)

    def _asked(self, record: wire.Reserve, now_ns: int) -> None:
        late_ns = now_ns - self._put_off_at_ns
        waits = self._unanswered is None and not PUT_OFF_NS <= late_ns < PUT_OFF_APART_NS
        self._answer(record, now_ns, waits)
        if self._unanswered is record:
            if late_ns >= PUT_OFF_APART_NS:
                self._put_off_at_ns, late_ns = now_ns, 0
            self._terms.look_soon()
            self._loop.call_later((PUT_OFF_NS - late_ns) / NS_PER_S, self._answer_late, record)

    def _answer(self, record: wire.Reserve, now_ns: int, waits: bool) -> None:
        """Answers a question, or keeps it where it hangs on what the driver says, if the answer may wait for that."""
        verdict = self._reserve(record, waits)
        if not (verdict.granted or verdict.unsure):
            self._terms.records.spend(now_ns, REFUSAL_RECORDS + self._terms.memory.clients)
            if self._hear_others is not None:
                self._hear_others()
            verdict = self._reserve(record, waits)
        if verdict.unsure:
            self._unanswered = record
        else:
            self._say(wire.Reserved(record.number, verdict.free_bytes, verdict.granted), now_ns)

    def _answer_late(self, record: wire.Reserve) -> None:
        """The time is over in which the driver could say something."""
        if self._unanswered is record:
            self.answer(waits=False)

    def _reserve(self, record: wire.Reserve, waits: bool) -> Verdict:
        if record.kind == wire.MemoryKind.CONTEXT:
            return self._terms.memory.reserve_context(self._client_id, record.device)
        return self._terms.memory.reserve(self._client_id, record.device, record.size_bytes, waits)

    def _say(self, record: wire.ManagerRecord, now_ns: int) -> None:
        if self._send is not None:
            self._terms.records.spend(now_ns, ANSWER_RECORDS)
            self._send(record)
