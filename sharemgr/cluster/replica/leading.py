"""Which of the replicas leads: the one that holds the Lease, for as long as it can know that it does."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from uuid import uuid4

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import follow
from sharemgr.cluster.config import ObjectName
from sharemgr.cluster.replica.lease import Lease, LeaseTimes, holder_of, leases_path

logger = logging.getLogger(__name__)

LEASE_S, RENEW_S, RETRY_S = 15, 10, 2
"""As in client-go (tools/leaderelection): five failed attempts to renew are borne, and a leader that could not renew
stops five seconds before another can begin, by which time what it had begun is over (``bind_timeout_s``)."""

TIMES = LeaseTimes(LEASE_S, RENEW_S, RETRY_S)


class Term:
    """A time during which this replica leads."""

    def __init__(self, until_s: float) -> None:
        self.until_s = until_s
        """Of the monotonic clock: it is over then, if it is not prolonged."""
        self.over = asyncio.Event()

    @property
    def holds(self) -> bool:
        """Asks the clock: a process that was stopped goes on without having been told that its time is over."""
        return not self.over.is_set() and monotonic() < self.until_s


class Leading:
    """Whether this replica leads."""

    def __init__(self) -> None:
        self.term: Term | None = None
        """The one that is."""
        self.began = asyncio.Event()
        """Set while there is one."""
        self.holder = ""
        """Who else leads, as last seen."""

    def begin(self, until_s: float) -> Term:
        """Begins a term."""
        self.term = Term(until_s)
        self.began.set()
        return self.term

    def end(self) -> None:
        """Ends the one that is."""
        if self.term is not None:
            self.term.over.set()
            self.term = None
        self.began.clear()


@asynccontextmanager
async def alone() -> AsyncIterator[Leading]:
    """With no Lease: one term, until it is left."""
    leading = Leading()
    leading.begin(float("inf"))
    yield leading
    leading.end()


@asynccontextmanager
async def by_lease(lease: ObjectName, calls: Calls, times: LeaseTimes) -> AsyncIterator[Leading]:
    """Takes the Lease whenever it is to be had, and gives it back when it is left."""
    leading = Leading()
    keeping = _Keeping(leading, asyncio.get_running_loop(), times.renew_s)
    # A pod that is made anew has its name again: the old one's Lease must not be taken for the new one's.
    identity = f"{os.uname().nodename}_{uuid4()}"
    wanted = Lease(calls, lease.namespace, lease.name, identity, times, keeping.renewed, keeping.held_by)
    logger.info("%s wants Lease %s/%s", identity, lease.namespace, lease.name)
    async with asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(wanted.take())
        try:
            yield leading
        finally:
            keeping.close()
            try:
                await wanted.give_back()
            except Unavailable as error:
                logger.warning("%s; another replica leads in %d s", error, times.lease_s)
            taking.cancel()


@asynccontextmanager
async def by_scheduler(lease: ObjectName, calls: Calls, times: LeaseTimes) -> AsyncIterator[Leading]:
    """Leads while the kube-scheduler of the same pod renews its Lease; nobody else asks this replica."""
    leading = Leading()
    beside = _Beside(leading, asyncio.get_running_loop(), times)

    def listed(holders: list[str]) -> None:
        beside.renewed_by(holders[0] if holders else "")

    def changed(kind: str, holder: str) -> None:
        beside.renewed_by(holder if kind != "DELETED" else "")

    logger.info("leads while its pod's scheduler holds Lease %s/%s", lease.namespace, lease.name)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(
            follow(calls, leases_path(lease.namespace), f"metadata.name={lease.name}", holder_of, listed, changed)
        )
        try:
            yield leading
        finally:
            following.cancel()
            beside.close()


class _Beside:
    """Turns what is seen of a kube-scheduler's Lease into terms.

    kube-scheduler gives its Lease away before it ends, and a Binding that it has asked for goes on meanwhile. So where
    another's name was seen, a term begins only when such a Binding is over: ``bind_timeout_s`` is below that."""

    def __init__(self, leading: Leading, loop: asyncio.AbstractEventLoop, times: LeaseTimes) -> None:
        self._keeping = _Keeping(leading, loop, times.renew_s)
        self._loop = loop
        self._times = times
        # As client-go's users name themselves: host, then what tells processes apart. A pod has one host name.
        self._ours = f"{os.uname().nodename}_"
        self._others_until_s = 0.0
        self._forget: asyncio.TimerHandle | None = None
        # Whose it was before is not known.
        self._was_anothers()

    def renewed_by(self, holder: str) -> None:
        """Takes in whose the Lease was seen to be, or to stay; nobody's where ``holder`` is empty."""
        if self._forget is not None:
            self._forget.cancel()
            self._forget = None
        if holder.startswith(self._ours):
            if monotonic() >= self._others_until_s:
                self._keeping.renewed(monotonic())
            return
        if holder:
            self._was_anothers()
            # One that renews it no more stands in it, and leads no more.
            self._forget = self._loop.call_later(self._times.lease_s, self._keeping.held_by, "")
        self._keeping.held_by(holder)

    def close(self) -> None:
        """Leads no more."""
        if self._forget is not None:
            self._forget.cancel()
        self._keeping.close()

    def _was_anothers(self) -> None:
        self._others_until_s = monotonic() + self._times.lease_s - self._times.renew_s


class _Keeping:
    """Turns what becomes of the Lease into terms, in the event loop."""

    def __init__(self, leading: Leading, loop: asyncio.AbstractEventLoop, renew_s: float) -> None:
        self._leading = leading
        self._loop = loop
        self._renew_s = renew_s
        self._end: asyncio.TimerHandle | None = None
        self._closed = False

    def renewed(self, began_s: float) -> None:
        until_s = began_s + self._renew_s
        if self._closed or until_s <= monotonic():
            return
        term = self._leading.term
        if term is not None and term.holds:
            term.until_s = until_s
        else:
            self._over("the last renewal came too late")
            self._leading.begin(until_s)
            self._leading.holder = ""
            logger.info("this replica leads")
        self._end_at(until_s)

    def held_by(self, holder: str) -> None:
        self._leading.holder = holder
        self._over(f"{holder or 'nobody'} holds the Lease")

    def close(self) -> None:
        self._closed = True
        self._over("it ends")

    def _end_at(self, until_s: float) -> None:
        if self._end is not None:
            self._end.cancel()
        late = f"the Lease was not renewed for {self._renew_s} s"
        self._end = self._loop.call_later(until_s - monotonic(), self._over, late)

    def _over(self, why: str) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._leading.term is not None:
            self._leading.end()
            logger.warning("this replica leads no more: %s", why)
