"""One client: a hooked process at the other end of an allocation's socket."""

import socket
from collections.abc import Callable
from time import monotonic_ns

from cuda_hook import wire
from cuda_hook.gate import GatePages, SiblingsPage
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from sharemgr.node.clients.memory_records import MemoryRecords
from sharemgr.node.clients.offences import Offence
from sharemgr.node.clients.records import Records
from sharemgr.node.clients.terms import Terms
from sharemgr.node.clients.usage import Counters
from sharemgr.node.clients.welcome import Welcome
from sharemgr.node.sockets.closer import Closer
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.sockets.peers import Peer
from sharemgr.node.turns.demand import Use

HELLO_TIMEOUT_NS = 5 * NS_PER_S
"""A hook says HELLO at once; a connection that has not after this long is something else."""

CAUGHT_UP_RECORDS = 64
"""What a client has said and we have not read is read before another one is refused memory: at most so many records,
which is more than its threads can have under way."""

DESCRIPTORS_DROPPED = int(socket.MSG_CTRUNC)
CLOSE_ON_EXEC = int(socket.MSG_CMSG_CLOEXEC)
"""Plain numbers: socket's own are an enumeration, whose members take microseconds to combine."""

PAUSE_NS = 20 * NS_PER_MS
"""How long a client that sends more than it may is not read, at least."""

PAUSE_RECORDS = 3
"""What a pause costs of the records that may be sent, as it costs the manager about so much: many clients that each
say one thing between two pauses would otherwise cost several times what their records do."""

CLIENTS_A_RECORD = 5
"""At a record the pages of all of the allocation's clients are read: of each so many more that costs the manager about
as much as a record, and so it takes that from what allocations may say beyond what each is guaranteed."""


class Client:
    """One connection, from accept to its end.

    Its records are handled right where they are read, in the event loop's callback: no queue and no task
    lie between a RELEASE and the next one's gate.
    """

    __slots__ = (
        "_buffers",
        "_closer",
        "_connection",
        "_ended",
        "_floods",
        "_hear_others",
        "_inbox",
        "_loop",
        "_records",
        "_terms",
        "_welcome",
        "_welcomed",
        "client_id",
        "connected_at_ns",
        "fd",
        "memory",
        "pages",
        "peer",
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
        self.fd = connection.fileno()
        """Of its connection, also when that has ended."""
        self._connection = connection
        self._closer = closer
        self._terms = terms
        self._inbox = terms.inbox
        self._buffers = [terms.inbox.buffer]
        self._loop = loop
        self._welcomed = welcomed
        self._ended: Callable[[Client], None] | None = ended
        self._hear_others = hear_others
        self._floods = False
        self.memory = MemoryRecords(client_id, terms, loop, self._send, self._hear_siblings)
        """What it says of its memory."""
        self._records = Records(client_id, terms, self.memory, self.connected_at_ns)
        self._welcome = Welcome(peer.pid, connection, terms, siblings, loop, self._begin, self.end)
        loop.watch(connection.fileno(), self._readable)
        if peer.pidfd >= 0:
            loop.watch(peer.pidfd, self.end)

    @property
    def joined(self) -> bool:
        """Whether it has been welcomed."""
        return self.pages is not None

    @property
    def counters(self) -> Counters:
        """What its pages say that it used."""
        return self._records.counters

    @property
    def speaks(self) -> int:
        """The version of the protocol that was agreed on; 0 before HELLO."""
        return self._welcome.speaks

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
        self._records.opened(number, granted_at_ns, beside[0] != 0)
        self.pages.open(number, contended, granted_at_ns, free_at_ns, ends_at_ns, *beside)

    def prolong_gate(self, ends_at_ns: int) -> None:
        """Lets it queue up to another end of its grant; nothing where it has not joined."""
        if self.pages is not None:
            self.pages.prolong(ends_at_ns)

    def add_use(self, use: Use, now_ns: int) -> bool:
        """Adds to its allocation's use what its pages say since this was last called; False where it has not joined."""
        if self.pages is None:
            return False
        self.counters.add(self.pages, use, now_ns)
        return True

    def look(self) -> None:
        """The devices are looked at. A client without counters has told of its use by other means."""
        if self.pages is not None and self._welcome.beside_others and not self.counters.look(self.pages):
            text = f"pid {self.peer.pid}: the counters in its page say what cannot be; they are waited for"
            self._terms.offences.tell(Offence.FALSE_COUNTERS, text, monotonic_ns())

    def unheard_ns(self) -> int:
        """GPU time that its pages know of and that has not been taken in yet."""
        return self.counters.unheard_ns(self.pages) if self.pages is not None else 0

    def hear(self, now_ns: int) -> None:
        """Takes in a RELEASE that it left in its hint page, as of when it says that it left it."""
        if self.pages is None:
            return
        try:
            self._records.hear(self.pages, now_ns)
        except wire.MalformedRecord as error:
            self.offend(self._records.flaw(error.flaw, wire.RELEASE_BYTES), str(error))

    def end(self) -> None:
        """Takes the client out: its process died, its connection ended, or it is to leave."""
        ended, self._ended = self._ended, None
        self.memory.forget()
        if ended is None:
            return
        if self.pages is not None:
            # First of all what others wait for. The gate is shut before somebody else's opens.
            self.pages.discard()
            self._terms.device.gone(self._terms.allocation_id, self.client_id, monotonic_ns())
        self._welcome.give_up()
        self._terms.paused.leave(self.client_id)
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

    def catch_up(self) -> None:
        """Handles what the client has said so far, as far as it may say so much. What it freed before another one asks
        is free then, whichever of the two the kernel shows us first."""
        for _ in range(CAUGHT_UP_RECORDS):
            if self._ended is None or self._floods or self._closer.full or not self._read():
                return

    def _readable(self) -> None:
        if self._pauses():
            self._loop.unwatch(self.fd)

    def _pauses(self) -> bool:
        """Handles a record; whether it is to be read no more for a while."""
        full = self._closer.full
        if not full:
            self._read()
        if self._ended is None or not (self._floods or full):
            return False
        now_ns = monotonic_ns()
        if self._floods:
            self._terms.offences.count(Offence.FLOOD)
            self._terms.records.spend(now_ns, PAUSE_RECORDS)
        self._terms.paused.wait(self.client_id, self._resume, now_ns)
        return True

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
            self.offend(self._records.flaw(error.flaw, size_bytes), str(error))
        except InvalidRequest as error:
            self.offend(Offence.FALSE_MEMORY, str(error))
        self._floods = not terms.records.spend(now_ns, 1, 1 + terms.memory.clients // CLIENTS_A_RECORD)
        return True

    def _resume(self) -> None:
        """Reads on, its allocation having paid; a record at once, so that it is paid for before the next client's."""
        self._floods = False
        if not self._pauses() and self._ended is not None:
            self._loop.watch(self.fd, self._readable)

    def _handle(self, size_bytes: int, now_ns: int) -> None:
        kind = self._inbox.kind(size_bytes)
        if self.pages is None:
            self._join(self._inbox.record(kind), now_ns)
        elif not self._records.handle(kind, self.pages, now_ns):
            self.offend(Offence.OUT_OF_ORDER, "HELLO came twice")

    def _join(self, record: wire.ClientRecord, now_ns: int) -> None:
        if not isinstance(record, wire.Hello) or self.speaks:
            self.offend(Offence.OUT_OF_ORDER, f"{type(record).__name__} came before HELLO, or before its WELCOME")
            return
        refused = self._welcome.begin(record, now_ns)
        if refused is not None:
            self._terms.offences.tell(Offence.REFUSED, f"pid {self.peer.pid} is refused: {refused.text}", now_ns)
            self._send(refused)
            self.end()

    def _begin(self, pages: GatePages, now_ns: int) -> None:
        """The client has its pages, and takes part from now on."""
        terms = self._terms
        self.pages = pages
        terms.memory.join(self.client_id, pages)
        self._welcomed(self)
        terms.device.join(terms.allocation_id, self.client_id, self._welcome.beside_others, now_ns)

    def _hear_siblings(self) -> None:
        self._hear_others(self)

    def _send(self, record: wire.ManagerRecord) -> None:
        try:
            self._connection.send(wire.encode(record))
        except BlockingIOError:
            # We keep no answer for it.
            self.offend(Offence.UNREAD, "it does not read what it asked for")
        except OSError:
            self.end()
