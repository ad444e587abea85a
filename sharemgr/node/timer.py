"""A timer that keeps to microseconds, for the arbiter's deadlines."""

import asyncio
import ctypes
import os
from collections.abc import Callable

from edgeshare.units import NS_PER_S

# linux/timerfd.h and linux/time.h. Python's os has timerfd from 3.13 on.
_TFD_TIMER_ABSTIME = 1
_CLOCK_MONOTONIC = 1


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class DeadlineTimer:
    """Calls ``callback`` in the event loop at a time of the monotonic clock.

    asyncio's own timers end in epoll's timeout, which Python rounds up to the next millisecond: a fifth
    of a slice. A timerfd is as exact as the kernel's clock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop = loop
        self._callback = callback
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._armed_ns: int | None = None
        self._spec = _TimerSpec()
        self._spec_pointer = ctypes.byref(self._spec)
        loop.add_reader(self._fd, self._expired)

    def arm(self, deadline_ns: int | None) -> None:
        """Calls back at this time at the latest; None: there is nothing to wait for.

        A deadline that moves away is left where it was: the timer then fires early, and whoever is called
        arms it anew. That spares a system call for most records.
        """
        if deadline_ns is None or (self._armed_ns is not None and self._armed_ns <= deadline_ns):
            return
        self._armed_ns = deadline_ns
        value = self._spec.value
        # Zero would disarm it.
        value.seconds, value.nanoseconds = divmod(max(deadline_ns, 1), NS_PER_S)
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._spec_pointer, None)

    def close(self) -> None:
        """Calls back no more."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _expired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            # Armed anew between the event and this call.
            return
        self._armed_ns = None
        self._callback()
