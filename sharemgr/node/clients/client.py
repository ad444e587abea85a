"""One client: a hooked process at the other end of an allocation's socket."""

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic_ns
from typing import Any
from uuid import UUID

from cuda_hook import wire
from cuda_hook._core import ffi
from cuda_hook.gate import GRANT_NUMBER_MAX, GatePages, SiblingsPage
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.clients.budget import Part
from sharemgr.node.clients.device import DeviceArbiter
from sharemgr.node.clients.offences import Offence, Offences
from sharemgr.node.memory.allowances import Memory
from sharemgr.node.memory.ledger import Verdict
from sharemgr.node.sockets.closer import Closer
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.sockets.peers import Peer
from sharemgr.node.turns.demand import Use

HELLO_TIMEOUT_NS = 5 * NS_PER_S
"""A hook says HELLO at once; a connection that has not after this long is something else."""

CAUGHT_UP_RECORDS = 64
"""What a client has said and we have not read is read before another one is refused memory: at most so many records,
which is more than its threads can have under way."""

REFUSAL_RECORDS = 8
"""What a refused reservation costs of the records that may be sent, and one more for each client of the allocation: of
each it is looked at what it said, and what it holds and does not use."""

DESCRIPTORS_DROPPED = int(socket.MSG_CTRUNC)
CLOSE_ON_EXEC = int(socket.MSG_CMSG_CLOEXEC)
"""Plain numbers: socket's own are an enumeration, whose members take microseconds to combine."""

PUT_OFF_NS = 400 * NS_PER_MS
"""So long a client's answers wait, at most and all together, for what the driver says that contexts take. A client
takes a manager for hung that answers nothing for a second (ES_ANSWER_MS in the hook's greeting.h), and its other
threads' questions wait behind each."""

PUT_OFF_APART_NS = 2000 * NS_PER_MS
"""From when a client's answers began to wait until they may do so again."""

PAUSE_S = 0.02
"""How long a client that sends more than it may is not read, at least."""

PAUSE_RECORDS = 3
"""What a pause costs of the records that may be sent, as it costs the manager about so much: many clients that each
say one thing between two pauses would otherwise cost several times what their records do."""

CLIENTS_A_RECORD = 5
"""At a record the pages of all of the allocation's clients are read: of each so many more that costs the manager about
as much as a record, and so it takes that from what allocations may say beyond what each is guaranteed."""

AGAIN_S = 0.1
"""After which one that could not be welcomed is tried to be again."""

OFFENCE_RECORDS = 20
"""What a record that is good for nothing costs of the records that may be sent: nobody needs many of them."""

BESIDE_VERSION = 2
"""From this version of the protocol on pages say what a client uses, and it can be let in beside others."""

USAGE_SLACK_NS = NS_PER_MS
"""By how much, and a sixteenth, reported GPU time may exceed the time since the gate was opened before it counts as a
lie: events that were timed while another one had the device are that wrong."""

FLAWS = {
    wire.Flaw.SHORT: Offence.TRUNCATED,
    wire.Flaw.UNKNOWN: Offence.UNKNOWN,
    wire.Flaw.FIELD: Offence.MALFORMED,
}


@dataclass(frozen=True)
class Terms:
    """What all clients of one allocation have in common."""

    allocation_id: str
    device_ids: tuple[str, ...]
    accelerator: wire.Accelerator
    welcome: wire.Welcome
    device: DeviceArbiter
    memory: Memory
    offences: Offences
    records: Part
    """How many records its clients may send, all together, beside those of the other allocations."""
    inbox: wire.Inbox
    """Where all clients' records are received, one at a time."""
    look_soon: Callable[[], None] = lambda: None
    """Has the driver asked soon what its clients' processes use: one's answer waits for that."""
    device_lines: tuple[str, ...] = ()
    """Lines of hook.conf that say by what paths a program reaches its devices, where the hook has to know."""


class Client:
    """One connection, from accept to its end.

    Its records are handled right where they are read, in the event loop's callback: no queue and no task
    lie between a RELEASE and the next one's gate.
    """

    __slots__ = (
        "_beside",
        "_buffers",
        "_claimed_ns",
        "_closer",
        "_connection",
        "_ended",
        "_first",
        "_floods",
        "_gpu_ns",
        "_hear_others",
        "_heard_ns",
        "_idle_ns",
        "_inbox",
        "_last",
        "_left",
        "_looked_gpu_ns",
        "_loop",
        "_moved_at_ns",
        "_opened_at_ns",
        "_place",
        "_put_off_at_ns",
        "_read_at_ns",
        "_sent",
        "_siblings",
        "_terms",
        "_told_ns",
        "_unanswered",
        "_used",
        "_welcomed",
        "client_id",
        "connected_at_ns",
        "fd",
        "pages",
        "peer",
        "quiet_looks",
        "speaks",
    )

    def __init__(
        self,
        *,
        client_id: int,
        connection: socket.socket,
        peer: Peer,
        terms: Terms,
        siblings: SiblingsPage,
        closer: Closer,
        loop: Loop,
        welcomed: Callable[["Client"], None],
        ended: Callable[["Client"], None],
        hear_others: Callable[["Client"], None],
    ) -> None:
        """``connection`` is non-blocking; ``welcomed`` is called when the client has joined; ``ended`` once, when it is
        gone; ``hear_others`` makes the allocation's other clients catch up."""
        self.client_id = client_id
        self.peer = peer
        self.pages: GatePages | None = None
        """Its gate, from HELLO on."""
        self.connected_at_ns = monotonic_ns()
        self.speaks = 0
        """The version of the protocol that was agreed on; 0 before HELLO."""
        self.fd = connection.fileno()
        """Of its connection, also when that has ended."""
        self._connection = connection
        self._closer = closer
        self._terms = terms
        self._siblings = siblings
        self._place = -1  # in the siblings page, once it has joined
        self._inbox = terms.inbox
        self._buffers = [terms.inbox.buffer]
        self._loop = loop
        self._welcomed = welcomed
        self._ended: Callable[[Client], None] | None = ended
        self._hear_others = hear_others
        self._floods = False
        # The numbers that its gate showed since it released: what it says has to repeat one of them.
        self._first = 0
        self._last = 0
        self._opened_at_ns = 0
        self._claimed_ns = 0  # GPU time, since then
        # The grants that it gave back last, by a record and without one.
        self._sent = 0
        self._left = 0
        # What its pages said when they were last read.
        self._used: Any = ffi.new("struct es_used *")
        self._gpu_ns = self._idle_ns = 0
        # GPU time in all: by its records, and as far as it has been taken in, be it by a record or from its pages.
        self._told_ns = self._heard_ns = 0
        self._moved_at_ns = self._read_at_ns = self.connected_at_ns
        self._looked_gpu_ns = 0
        self.quiet_looks = 0
        """So many looks at the devices came one after the other in which its pages told of no use."""
        self._beside = False  # others may be let in beside it
        self._unanswered: wire.Reserve | None = None  # what it asked, as long as the answer waits for the driver
        self._put_off_at_ns = -PUT_OFF_APART_NS  # when one waited first, of those that wait together
        loop.watch(connection.fileno(), self._readable)
        if peer.pidfd >= 0:
            loop.watch(peer.pidfd, self.end)

    @property
    def joined(self) -> bool:
        """Whether it has been welcomed."""
        return self.pages is not None

    @property
    def waits(self) -> bool:
        """Whether an answer of it waits for what the driver says."""
        return self._unanswered is not None

    def open_gate(
        self,
        number: int,
        contended: bool,
        granted_at_ns: int,
        free_at_ns: int,
        ends_at_ns: int,
        beside: tuple[int, int],
    ) -> None:
        """Lets it launch; nothing where it has not joined."""
        if self.pages is None:
            return
        if not self._first:
            self._first = number
            self._opened_at_ns = granted_at_ns
            self._claimed_ns = 0
            if not self._used.queued:
                # It could submit nothing since it was read last, and that may be long ago.
                self._moved_at_ns = self._read_at_ns = max(self._read_at_ns, granted_at_ns)
        self._last = number
        self._beside = beside[0] != 0
        self.pages.open(number, contended, granted_at_ns, free_at_ns, ends_at_ns, *beside)

    def prolong_gate(self, ends_at_ns: int) -> None:
        """Lets it queue up to another end of its grant; nothing where it has not joined."""
        if self.pages is not None:
            self.pages.prolong(ends_at_ns)

    def add_use(self, use: Use, now_ns: int) -> bool:
        """Adds to its allocation's use what its pages say since this was last called; False where it has not joined.
        A counter that went back is waited for."""
        if self.pages is None:
            return False
        told = self._used
        self.pages.used(told)
        idle_ns = told.idle_ns
        if 0 < told.idle_since_ns < now_ns:
            idle_ns += now_ns - told.idle_since_ns
        gpu_ns = told.gpu_ns
        if not told.queued:
            self._moved_at_ns = now_ns
        elif gpu_ns > self._gpu_ns:
            # At some time since it was read last.
            self._moved_at_ns = self._read_at_ns
        self._read_at_ns = now_ns
        use.gpu_ns += max(0, gpu_ns - self._gpu_ns)
        use.idle_ns = min(use.idle_ns, max(0, idle_ns - self._idle_ns))
        self._gpu_ns, self._idle_ns = max(self._gpu_ns, gpu_ns), max(self._idle_ns, idle_ns)
        use.unheard_ns += max(0, gpu_ns - self._heard_ns)
        use.waits = use.waits or told.waits != 0
        if told.queued:
            use.queued = True
            use.undrained_ns += max(0, gpu_ns - told.drained_gpu_ns)
            use.running_ns += min(now_ns - self._moved_at_ns, told.pending_ns)
        return True

    def look(self) -> None:
        """The devices are looked at. A client without counters has told of its use by other means."""
        if self.pages is None or self.speaks < BESIDE_VERSION:
            return
        self.pages.used(self._used)
        quiet = not self._used.queued and self._used.gpu_ns == self._looked_gpu_ns
        self._looked_gpu_ns = self._used.gpu_ns
        self.quiet_looks = self.quiet_looks + 1 if quiet else 0

    def heard_by_pages(self) -> None:
        """What its pages said when they were last read has been taken in."""
        self._heard_ns = max(self._heard_ns, self._gpu_ns)

    def unheard_ns(self) -> int:
        """GPU time that its pages know of and that has not been taken in yet."""
        if self.pages is None:
            return 0
        self.pages.used(self._used)
        gpu_ns: int = self._used.gpu_ns
        return max(0, gpu_ns - self._heard_ns)

    def hear(self, now_ns: int) -> None:
        """Takes in a RELEASE that it left in its hint page, as of when it says that it left it."""
        inbox = self._inbox
        if self.pages is None:
            return
        drained_at_ns = self.pages.left(self._left, inbox.release)
        if drained_at_ns is None:
            return
        self._left = inbox.header.number
        if self._left == self._sent:
            return
        try:
            inbox.kind(wire.RELEASE_BYTES)
            self._release(min(drained_at_ns, now_ns))
        except wire.MalformedRecord as error:
            self.offend(self._flaw(error.flaw, wire.RELEASE_BYTES), str(error))

    def end(self) -> None:
        """Takes the client out: its process died, its connection ended, or it is to leave."""
        ended, self._ended = self._ended, None
        self._unanswered = None
        if ended is None:
            return
        if self.pages is not None:
            # First of all what others wait for. The gate is shut before somebody else's opens.
            self.pages.discard()
            self._terms.device.gone(self._terms.allocation_id, self.client_id, monotonic_ns())
        if self._place >= 0:
            self._siblings.give(self._place)
        self._loop.unwatch(self.fd)
        if self.peer.pidfd >= 0:
            self._loop.unwatch(self.peer.pidfd)
        self.peer.close()
        self._closer.end(self._connection)
        ended(self)

    def offend(self, kind: Offence, text: str) -> None:
        """Counts an offence that costs it its connection, and says so."""
        self._terms.offences.tell(kind, f"pid {self.peer.pid}: {text}; its connection is closed", monotonic_ns())
        self.end()

    def answer(self, waits: bool = True) -> None:
        """Answers what waits for the driver, which has just been asked, where that is enough to go by; without
        ``waits`` in any case."""
        record, self._unanswered = self._unanswered, None
        if record is not None:
            self._answer(record, monotonic_ns(), waits)

    def catch_up(self) -> None:
        """Handles what the client has said so far, as far as it may say so much. What it freed before another one asks
        is free then, whichever of the two the kernel shows us first."""
        for _ in range(CAUGHT_UP_RECORDS):
            if self._ended is None or self._floods or self._closer.full or not self._read():
                return

    def _readable(self) -> None:
        full = self._closer.full
        if not full:
            self._read()
        if self._ended is None or not (self._floods or full):
            return
        self._loop.unwatch(self.fd)
        now_ns = monotonic_ns()
        if self._floods:
            self._terms.offences.count(Offence.FLOOD)
            self._terms.records.spend(now_ns, PAUSE_RECORDS)
        self._pause(now_ns)

    def _pause(self, now_ns: int) -> None:
        self._loop.call_later(max(PAUSE_S, self._terms.records.wait_ns(now_ns) / NS_PER_S), self._resume)

    def _read(self) -> bool:
        """Handles one record; False when there is none."""
        try:
            size_bytes, passed, flags, _ = self._connection.recvmsg_into(
                self._buffers, self._closer.room_bytes, CLOSE_ON_EXEC
            )
        except BlockingIOError:
            return False
        except OSError:
            self.end()
            return False
        if passed or flags & DESCRIPTORS_DROPPED:
            self._closer.drop(passed)
            self.offend(Offence.DESCRIPTORS, "it passes file descriptors, which nobody takes")
            return False
        if not size_bytes:
            self.end()
            return False
        now_ns = monotonic_ns()
        terms = self._terms
        try:
            self._handle(size_bytes, now_ns)
        except wire.MalformedRecord as error:
            self.offend(self._flaw(error.flaw, size_bytes), str(error))
        except InvalidRequest as error:
            self.offend(Offence.FALSE_MEMORY, str(error))
        self._floods = not terms.records.spend(now_ns, 1, 1 + terms.memory.clients // CLIENTS_A_RECORD)
        return True

    def _resume(self) -> None:
        """Reads on as soon as its allocation has paid: were each client read once a pause whatever that costs, many of
        them would go round the limit."""
        if self._ended is None:
            return
        now_ns = monotonic_ns()
        if self._terms.records.wait_ns(now_ns):
            self._pause(now_ns)
            return
        self._floods = False
        self._loop.watch(self.fd, self._readable)

    def _handle(self, size_bytes: int, now_ns: int) -> None:
        inbox = self._inbox
        kind = inbox.kind(size_bytes)
        terms = self._terms
        if self.pages is None:
            self._join(inbox.record(kind), now_ns)
        elif kind == wire.RELEASE:
            # One that was left too late for a look is sent as well.
            self._sent = inbox.header.number
            if self._sent != self._left:
                self._release(now_ns)
        elif kind == wire.DRAINING:
            draining = inbox.draining
            number = draining.header.number
            self._check_number(number, now_ns)
            terms.device.draining(terms.allocation_id, self.client_id, number, draining.ends_at_ns, now_ns)
        elif kind == wire.REQUEST:
            terms.device.request(terms.allocation_id, self.client_id, now_ns)
        elif kind == wire.USAGE:
            usage = inbox.usage
            number = usage.header.number
            self._check_usage(number, usage.gpu_ns, now_ns)
            gpu_ns = self._take_in(usage.gpu_ns)
            terms.device.usage(terms.allocation_id, self.client_id, number, gpu_ns, now_ns)
        else:
            self._handle_memory(inbox.record(kind), now_ns)

    def _release(self, now_ns: int) -> None:
        """Handles the RELEASE in the inbox. Others may be heard meanwhile, by way of the same inbox."""
        release = self._inbox.release
        number = release.header.number
        if self._check_usage(number, release.gpu_ns, now_ns):
            self._first = 0
        terms = self._terms
        if self.pages is not None:
            terms.device.hand_over(terms.allocation_id, self.pages.hinted_hand_over_ns())
        gpu_ns = self._take_in(release.gpu_ns)
        terms.device.release(terms.allocation_id, self.client_id, number, gpu_ns, release.flags & 1 == 1, now_ns)

    def _take_in(self, gpu_ns: int) -> int:
        """A record tells of this GPU time; returns what of it has not been taken in from its pages."""
        self._told_ns += gpu_ns
        unheard_ns = max(0, self._told_ns - self._heard_ns)
        self._heard_ns += unheard_ns
        return unheard_ns

    def _handle_memory(self, record: wire.ClientRecord, now_ns: int) -> None:
        memory = self._terms.memory
        if not isinstance(record, wire.Declare):
            memory.declared(self.client_id)
        match record:
            case wire.Reserve():
                late_ns = now_ns - self._put_off_at_ns
                waits = self._unanswered is None and not PUT_OFF_NS <= late_ns < PUT_OFF_APART_NS
                self._answer(record, now_ns, waits)
                if self._unanswered is record:
                    if late_ns >= PUT_OFF_APART_NS:
                        self._put_off_at_ns, late_ns = now_ns, 0
                    self._terms.look_soon()
                    self._loop.call_later((PUT_OFF_NS - late_ns) / NS_PER_S, self._answer_late, record)
            case wire.Declare(size_bytes, device, wire.MemoryKind.PLAIN):
                memory.declare(self.client_id, device, size_bytes)
            case wire.Declare(_, device):
                memory.declare_context(self.client_id, device)
            case wire.Freed(size_bytes, device, wire.MemoryKind.PLAIN):
                memory.freed(self.client_id, device, size_bytes)
            case wire.Freed(_, device):
                memory.context_ended(self.client_id, device)
            case wire.MemoryQuery(number, device):
                info = memory.info(device)
                self._send(wire.MemoryInfo(number, info.cap_bytes, info.used_bytes))
            case wire.Hello():
                self.offend(Offence.OUT_OF_ORDER, "HELLO came twice")

    def _answer(self, record: wire.Reserve, now_ns: int, waits: bool) -> None:
        """Answers a question, or keeps it where it hangs on what the driver says, if the answer may wait for that."""
        verdict = self._reserve(record, waits)
        if not (verdict.granted or verdict.unsure):
            self._terms.records.spend(now_ns, REFUSAL_RECORDS + self._terms.memory.clients)
            self._hear_others(self)
            verdict = self._reserve(record, waits)
        if verdict.unsure:
            self._unanswered = record
        else:
            self._send(wire.Reserved(record.number, verdict.free_bytes, verdict.granted))

    def _answer_late(self, record: wire.Reserve) -> None:
        """The time is over in which the driver could say something."""
        if self._unanswered is record:
            self.answer(waits=False)

    def _check_number(self, number: int, now_ns: int) -> bool:
        """Whether its gate has shown this number since it released; one that it has not is counted, and ignored by
        the arbiter."""
        first = self._first
        if first and (number - first) % GRANT_NUMBER_MAX <= (self._last - first) % GRANT_NUMBER_MAX:
            return True
        self._slight(Offence.STALE, now_ns)
        return False

    def _check_usage(self, number: int, gpu_ns: int, now_ns: int) -> bool:
        """Counts a lie too, which the arbiter clamps; whether the number was good. Of one that others are let in beside
        the pages say what it uses, and the device how much there was."""
        if not self._check_number(number, now_ns):
            return False
        if self._beside:
            return True
        self._claimed_ns += gpu_ns
        passed_ns = now_ns - self._opened_at_ns
        if self._claimed_ns > passed_ns + (passed_ns >> 4) + USAGE_SLACK_NS:
            self._claimed_ns = passed_ns
            self._slight(Offence.FALSE_USAGE, now_ns)
        return True

    def _slight(self, kind: Offence, now_ns: int) -> None:
        """Counts an offence that does no harm, so that it only costs records."""
        self._terms.offences.count(kind)
        self._terms.records.spend(now_ns, OFFENCE_RECORDS)

    def _flaw(self, flaw: wire.Flaw, size_bytes: int) -> Offence:
        if size_bytes > wire.RECORD_BYTES_MAX:
            return Offence.OVERSIZED
        if flaw is not wire.Flaw.SIZE:
            return FLAWS[flaw]
        return Offence.OVERSIZED if self._inbox.exceeds(size_bytes) else Offence.TRUNCATED

    def _reserve(self, record: wire.Reserve, waits: bool) -> Verdict:
        if record.kind == wire.MemoryKind.CONTEXT:
            return self._terms.memory.reserve_context(self.client_id, record.device)
        return self._terms.memory.reserve(self.client_id, record.device, record.size_bytes, waits)

    def _join(self, record: wire.ClientRecord, now_ns: int) -> None:
        if not isinstance(record, wire.Hello) or self.speaks:
            self.offend(Offence.OUT_OF_ORDER, f"{type(record).__name__} came before HELLO, or before its WELCOME")
            return
        refused = _refusal(record, self._terms.accelerator)
        if refused is not None:
            self._terms.offences.count(Offence.REFUSED)
            self._send(refused)
            self.end()
            return
        self.speaks = wire.agreed_version(record)
        self._place = self._siblings.take(self._beside_others)
        self._make_pages(now_ns)

    def _make_pages(self, now_ns: int) -> None:
        """Makes its pages and welcomes it, now or as soon as there are descriptors for them."""
        terms = self._terms
        try:
            pages = GatePages.create(terms.welcome.epoch, self._place)
        except OSError as error:
            text = f"pid {self.peer.pid} waits: its pages cannot be made: {error.strerror}"
            terms.offences.tell(Offence.NOT_WELCOMED, text, now_ns)
            self._loop.call_later(AGAIN_S, self._make_pages_late)
            return
        pages.name_devices([uuid_bytes(device_id) for device_id in terms.device_ids])
        self._welcome(pages, now_ns)

    def _make_pages_late(self) -> None:
        if self._ended is not None:
            self._make_pages(monotonic_ns())

    @property
    def _beside_others(self) -> bool:
        """Whether others can be let in beside it."""
        return self.speaks >= BESIDE_VERSION

    def _welcome(self, pages: GatePages, now_ns: int) -> None:
        """Passes it its pages, now or as soon as the kernel lets us: it counts the descriptors that are on their way,
        of all processes of our user together, and any of them may have sent too many (unix(7), ETOOMANYREFS)."""
        terms = self._terms
        fds = (*pages.fds, self._siblings.fd) if self._beside_others else pages.fds
        try:
            if self._ended is not None:
                packet = wire.encode(replace(terms.welcome, version=self.speaks))
                socket.send_fds(self._connection, [packet], fds)
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:
                text = (
                    f"pid {self.peer.pid} waits: its pages cannot be passed to it, since processes of this user have "
                    "too many descriptors on their way; give the manager CAP_SYS_RESOURCE, or a user of its own"
                )
                terms.offences.tell(Offence.NOT_WELCOMED, text, now_ns)
                self._loop.call_later(AGAIN_S, self._welcome_late, pages)
                return
            self.end()
        pages.close_fds()
        if self._ended is None:
            return
        self.pages = pages
        terms.memory.join(self.client_id, pages)
        self._welcomed(self)
        terms.device.join(terms.allocation_id, self.client_id, self._beside_others, now_ns)

    def _welcome_late(self, pages: GatePages) -> None:
        self._welcome(pages, monotonic_ns())

    def _send(self, record: wire.ManagerRecord) -> None:
        try:
            self._connection.send(wire.encode(record))
        except BlockingIOError:
            # We keep no answer for it.
            self.offend(Offence.UNREAD, "it does not read what it asked for")
        except OSError:
            self.end()


def uuid_bytes(device_id: str) -> bytes:
    """The UUID in a device's id (``GPU-…``, ``MIG-…``), as the driver gives it; zeros where the id has none."""
    try:
        return UUID(device_id.partition("-")[2]).bytes
    except ValueError:
        return bytes(16)


def _refusal(hello: wire.Hello, accelerator: wire.Accelerator) -> wire.Refused | None:
    if not wire.agreed_version(hello):
        ours = f"{wire.VERSION_MIN} to {wire.VERSION}"
        text = f"this manager speaks versions {ours}, not {hello.version_min} to {hello.version_max}"
        return wire.Refused(wire.Refusal.VERSION, text)
    if hello.accelerator != accelerator:
        return wire.Refused(wire.Refusal.ACCELERATOR, f"this allocation is of a {accelerator.name}")
    return None
