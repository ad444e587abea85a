"""A lock that one process at a time has, and the next one waits for: an update's new pod beside the old one."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from edgeshare import detached
from edgeshare.contract.errors import Unavailable
from edgeshare.waiting import first_of

OWNER_ALONE = 0o600
"""Whoever may open the file, be it for reading, can lock it."""


@asynccontextmanager
async def locked(
    path: Path, stopping: asyncio.Event, waiting: Callable[[str], AbstractAsyncContextManager[None]]
) -> AsyncIterator[bool]:
    """Holds the lock of a file, which is made with its folder where there is none. The kernel frees it however its
    holder ends.

    Where another process holds it, this one is within ``waiting`` (of the holder's pid, as text) until that has ended.
    Yields whether it has the lock: False where ``stopping`` was set first. Raises Unavailable where the file cannot be
    opened or locked.
    """
    descriptor = _opened(path)
    taking: asyncio.Future[bool] | None = None
    try:
        has_it = _taken(path, descriptor, fcntl.LOCK_NB)
        if not has_it:
            async with waiting(os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"):
                taking = detached.call(lambda: _taken(path, descriptor, 0))
                await first_of(stopping, taking)
                has_it = taking.done() and taking.result()
        if has_it:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        # The file stays: who removed it could let a third process lock a new one beside the second's.
        yield has_it and not stopping.is_set()
    finally:
        # A thread that still waits uses it. It does not keep the process from its end, which closes it.
        if taking is None or taking.done():
            os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ALONE)
        try:
            # One that an older version made lets everybody read it.
            os.fchmod(descriptor, OWNER_ALONE)
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
    return descriptor


def _taken(path: Path, descriptor: int, without_waiting: int) -> bool:
    """Whether the lock is ours now. Returns at once with LOCK_NB, and else when it is."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | without_waiting)
    except BlockingIOError:
        return False
    except OSError as error:
        raise Unavailable(f"{path} cannot be locked: {error.strerror}") from error
    return True
