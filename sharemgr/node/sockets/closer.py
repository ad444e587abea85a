"""Descriptors that a client passes along with its records, and what they may lie in.

Whoever drops the last reference to a file waits until it is closed, for as long as the one who passed it likes: a TCP
connection that lingers, a file of his own file system. It is dropped by taking its record out of a connection, with
room for the descriptor or without, and by closing the connection or the listener in whose queue it lies. So from Linux
6.16 on the kernel is told to refuse descriptors as they are sent; before, what may hold one is closed by a thread of
the allocation's own, and nothing is read of an allocation for which too much is to be closed.
"""

import array
import errno
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic_ns

from edgeshare.log_limit import LogLimit

logger = logging.getLogger(__name__)

SO_PASSRIGHTS = 83
"""asm-generic/socket.h, Linux 6.16 and later."""

PASSED_MAX = 253
"""In one record: SCM_MAX_FD of the kernel's net/scm.h."""

_no_thread = LogLimit()
"""Of the lines that say that no thread can be started: threads are the manager's, of all allocations together."""

FULL = 64
"""So many wait to be closed that no more are taken in: as many as clients of an allocation that end at once."""


def refuses_descriptors(listener: socket.socket) -> bool:
    """Has the kernel refuse descriptors to whoever passes any into a connection of this listener that is made from now
    on; False where it knows no such option. Raises OSError."""
    try:
        listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        return False
    return True


class Closer:
    """Closes what one allocation's clients pass."""

    def __init__(self, listener: socket.socket) -> None:
        """For the connections of this listener, which does not listen yet. Raises OSError."""
        self.room_bytes = 0
        """For what comes along with a record: none where the kernel refuses it."""
        self._waiting: deque[int] = deque()
        self._lock = threading.Lock()
        self._closes = False  # a thread does
        if not refuses_descriptors(listener):
            self.room_bytes = socket.CMSG_SPACE(PASSED_MAX * array.array("i").itemsize)

    @property
    def full(self) -> bool:
        """Whether nothing more is to be taken in before some of it has been closed."""
        return len(self._waiting) > FULL

    def end(self, end: socket.socket) -> None:
        """Closes a connection or the listener; the other side sees it at once."""
        if not self.room_bytes:
            end.close()
            return
        with suppress(OSError):
            # The other side may be gone already.
            end.shutdown(socket.SHUT_RDWR)
        self._close([end.detach()])

    def drop(self, passed: Iterable[tuple[int, int, bytes]]) -> None:
        """Closes the descriptors that came along with a record."""
        for level, kind, data in passed:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors = array.array("i")
                descriptors.frombytes(data[: len(data) // descriptors.itemsize * descriptors.itemsize])
                self._close(descriptors)

    def _close(self, descriptors: Iterable[int]) -> None:
        with self._lock:
            self._waiting.extend(descriptors)
            begins, self._closes = not self._closes, True
        if begins:
            try:
                threading.Thread(target=self._run, name="closer", daemon=True).start()
            except RuntimeError as error:
                # They are closed with the next ones; nobody else than this allocation has to wait for that.
                self._closes = False
                if (more := _no_thread.ending(monotonic_ns())) is not None:
                    logger.error("no thread can be started to close what clients passed in: %s%s", error, more)

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._closes = False
                    return
                descriptor = self._waiting[0]
            with suppress(OSError):
                # What a close says is of the file's end, and the descriptor is free in any case.
                os.close(descriptor)
            self._waiting.popleft()
