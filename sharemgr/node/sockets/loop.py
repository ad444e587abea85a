"""An event loop with a short way for what grants wait for: a record, a deadline, a client's end."""

import asyncio
import logging
import select
import selectors
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Context
from time import monotonic, monotonic_ns
from typing import Any, TypeVarTuple

from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.log_limit import LogLimit

Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)

EVENTS_MAX = 64
"""Descriptors that are served between two looks at the rest of the loop, so that no flood keeps gRPC waiting."""


class Urgent(selectors.BaseSelector):
    """A selector for asyncio that calls for some descriptors right where they are found readable.

    asyncio makes a handle of each event, queues it, runs it in a context of its own and looks at its timers: as much
    work as the arbiter itself has with a record. All others are left to a plain selector, which is one of the
    descriptors here.
    """

    def __init__(self) -> None:
        self._others = selectors.EpollSelector()
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._log = LogLimit()
        self.scheduled = False
        """Something was given to asyncio to be done: it has to look."""
        self._others_fd = self._others.fileno()
        self._epoll.register(self._others_fd, select.EPOLLIN)

    def watch(self, fd: int, callback: Callable[[], None], edge: bool = False) -> None:
        """Calls back while ``fd`` is readable; with ``edge`` once each time that it becomes so."""
        self._epoll.register(fd, select.EPOLLIN | (select.EPOLLET if edge else 0))
        self._callbacks[fd] = callback

    def unwatch(self, fd: int) -> None:
        """Calls back no more; nothing where it did not."""
        if self._callbacks.pop(fd, None) is not None:
            # A descriptor that was closed before is out already.
            with suppress(OSError):
                self._epoll.unregister(fd)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Returns when asyncio has to look: for one of its own, for what a callback gave it, or after ``timeout``."""
        deadline_s = None if timeout is None else monotonic() + timeout
        self.scheduled = False
        while True:
            try:
                events = self._epoll.poll(_whole_ms(timeout), EVENTS_MAX)
            except InterruptedError:
                return []
            ready = self._serve(events)
            if ready or self.scheduled or not events:
                return ready
            if deadline_s is not None:
                timeout = deadline_s - monotonic()
                if timeout <= 0:
                    return ready

    def _serve(self, events: list[tuple[int, int]]) -> list[tuple[selectors.SelectorKey, int]]:
        others = self._others_fd
        callbacks = self._callbacks
        ready: list[tuple[selectors.SelectorKey, int]] = []
        for fd, _ in events:
            if fd == others:
                ready = self._others.select(0)
                continue
            # One that was served before it in this round may have ended it.
            callback = callbacks.get(fd)
            if callback is not None:
                try:
                    callback()
                except Exception:
                    # As asyncio does with its callbacks: one client's trouble must not end all others.
                    more = self._log.ending(monotonic_ns())
                    if more is not None:
                        logger.exception("a callback of the event loop failed%s", more)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._others.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._others.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._others.get_map()

    def close(self) -> None:
        self._epoll.close()
        self._others.close()


class Loop(asyncio.SelectorEventLoop):
    """asyncio's event loop, and beside it ``watch`` and ``unwatch``."""

    def __init__(self) -> None:
        self._urgent = Urgent()
        super().__init__(self._urgent)
        self.watch = self._urgent.watch
        self.unwatch = self._urgent.unwatch

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._urgent.scheduled = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._urgent.scheduled = True
        return super().call_at(when, callback, *args, context=context)


def _whole_ms(timeout: float | None) -> float | None:
    """In seconds. epoll counts in milliseconds; rounded down, the loop would spin through the last one."""
    if timeout is None or timeout <= 0:
        return timeout
    return -(-int(timeout * NS_PER_S) // NS_PER_MS) / 1000
