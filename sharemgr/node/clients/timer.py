"""A timer that keeps to microseconds, for the arbiter's deadlines."""

import os
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from cuda_hook._core import ffi, lib
from edgeshare.contract.units import NS_PER_S
from sharemgr.node.sockets.loop import Loop


class DeadlineTimer:
    """Calls ``callback`` in the event loop at a time of the monotonic clock.

    asyncio's own timers end in epoll's timeout, which Python rounds up to the next millisecond: a fifth
    of a slice. A timerfd is as exact as the kernel's clock.
    """

    def __init__(self, loop: Loop, callback: Callable[[int], None]) -> None:
        """``callback`` gets the time."""
        self._loop = loop
        self._callback = callback
        self._fd: int = lib.timerfd_create(lib.CLOCK_MONOTONIC, lib.TFD_NONBLOCK | lib.TFD_CLOEXEC)
        if self._fd < 0:
            raise OSError(ffi.errno, "timerfd_create failed")
        self._armed_ns: int | None = None
        self.met = 0
        """Deadlines so far."""
        self.late_ns = 0
        """By how much they were met late, all together."""
        self.latest_ns = 0
        """By how much one was met late at most."""
        self._spec: Any = ffi.new("struct itimerspec *")
        self._value: Any = self._spec.it_value
        # By its edge: then nobody has to read it.
        loop.watch(self._fd, self._expired, edge=True)

    def arm(self, deadline_ns: int | None) -> None:
        """Calls back at this time at the latest; None: there is nothing to wait for.

        A deadline that moves away is left where it was: the timer then fires early, and whoever is called
        arms it anew. That spares a system call for most records.
        """
        if deadline_ns is None or (self._armed_ns is not None and self._armed_ns <= deadline_ns):
            return
        self._armed_ns = deadline_ns
        value = self._value
        # Zero would disarm it.
        value.tv_sec, value.tv_nsec = divmod(max(deadline_ns, 1), NS_PER_S)
        lib.timerfd_settime(self._fd, lib.TFD_TIMER_ABSTIME, self._spec, ffi.NULL)

    def close(self) -> None:
        """Calls back no more."""
        self._loop.unwatch(self._fd)
        os.close(self._fd)

    def _expired(self) -> None:
        now_ns = monotonic_ns()
        armed_ns, self._armed_ns = self._armed_ns, None
        if armed_ns is not None and now_ns >= armed_ns:
            self.met += 1
            self.late_ns += now_ns - armed_ns
            self.latest_ns = max(self.latest_ns, now_ns - armed_ns)
        self._callback(now_ns)
