"""A client's way in: from its HELLO to the WELCOME that passes it its pages."""

import errno
import socket
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fcntl import ioctl
from time import monotonic_ns
from uuid import UUID

from cuda_hook import wire
from cuda_hook.gate import GatePages, SiblingsPage
from sharemgr.node.clients.offences import Offence
from sharemgr.node.clients.terms import Terms
from sharemgr.node.sockets.loop import Loop

BESIDE_VERSION = 2
"""From this version of the protocol on pages say what a client uses, and it can be let in beside others."""

WAIT_VERSION = 3
"""From this version on one that cannot be welcomed is told that it has to wait; without that it would run past its
share after the grace time."""

WAIT = wire.encode(wire.Wait())

AGAIN_S = 0.1
"""After which one that could not be welcomed is tried to be again."""


class Welcome:
    """One client's, which is a process ``pid``."""

    __slots__ = ("_connection", "_ended", "_loop", "_pid", "_place", "_siblings", "_terms", "_welcomed", "speaks")

    def __init__(
        self,
        pid: int,
        connection: socket.socket,
        terms: Terms,
        siblings: SiblingsPage,
        loop: Loop,
        welcomed: Callable[[GatePages, int], None],
        ended: Callable[[], None],
    ) -> None:
        """``welcomed`` is called when it has its pages, with the time of the event; ``ended`` where its connection
        is broken."""
        self.speaks = 0
        """The version of the protocol that was agreed on; 0 before HELLO."""
        self._pid = pid
        self._connection = connection
        self._terms = terms
        self._siblings = siblings
        self._place = -1  # in the siblings page, once it has said HELLO
        self._loop = loop
        self._welcomed: Callable[[GatePages, int], None] | None = welcomed
        self._ended: Callable[[], None] | None = ended

    @property
    def beside_others(self) -> bool:
        """Whether others can be let in beside it."""
        return self.speaks >= BESIDE_VERSION

    def begin(self, hello: wire.Hello, now_ns: int) -> wire.Refused | None:
        """Welcomes it, now or as soon as there are descriptors for its pages; or says why not."""
        refused = _refusal(hello, self._terms.accelerator)
        if refused is None:
            self.speaks = wire.agreed_version(hello)
            self._place = self._siblings.take(self.beside_others)
            self._make_pages(now_ns)
        return refused

    def give_up(self) -> None:
        """The client is gone, and no longer known here."""
        self._welcomed = self._ended = None
        if self._place >= 0:
            self._siblings.give(self._place)

    def _make_pages(self, now_ns: int) -> None:
        terms = self._terms
        try:
            pages = GatePages.create(terms.welcome.epoch, self._place)
        except OSError as error:
            text = f"pid {self._pid} waits: its pages cannot be made: {error.strerror}"
            self._put_off(text, now_ns)
            self._loop.call_later(AGAIN_S, self._make_pages_late)
            return
        pages.name_devices([uuid_bytes(device_id) for device_id in terms.device_ids])
        self._pass(pages, now_ns)

    def _make_pages_late(self) -> None:
        if self._ended is not None:
            self._make_pages(monotonic_ns())

    def _pass(self, pages: GatePages, now_ns: int) -> None:
        """Passes it its pages, now or as soon as the kernel lets us: it counts the descriptors that are on their way,
        of all processes of our user together, and any of them may have sent too many (unix(7), ETOOMANYREFS)."""
        terms = self._terms
        fds = (*pages.fds, self._siblings.fd) if self.beside_others else pages.fds
        try:
            if self._ended is not None:
                packet = wire.encode(replace(terms.welcome, version=self.speaks))
                socket.send_fds(self._connection, [packet], fds)
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:
                text = (
                    f"pid {self._pid} waits: its pages cannot be passed to it, since processes of this user have "
                    "too many descriptors on their way; give the manager CAP_SYS_RESOURCE, or a user of its own"
                )
                self._put_off(text, now_ns)
                self._loop.call_later(AGAIN_S, self._pass_late, pages)
                return
            if self._ended is not None:
                self._ended()
        pages.close_fds()
        if self._welcomed is not None:
            self._welcomed(pages, now_ns)

    def _put_off(self, text: str, now_ns: int) -> None:
        """Says why it waits; and to it that it has to, where it has read what it was told before: one that does not
        read fills no socket with that, and its WELCOME finds room."""
        self._terms.offences.tell(Offence.NOT_WELCOMED, text, now_ns)
        with suppress(OSError):
            if self.speaks >= WAIT_VERSION and not _unread_bytes(self._connection):
                self._connection.send(WAIT)

    def _pass_late(self, pages: GatePages) -> None:
        self._pass(pages, monotonic_ns())


def _unread_bytes(connection: socket.socket) -> int:
    """How much of what was sent over it has not been received, as the kernel counts that."""
    return int.from_bytes(ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


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
