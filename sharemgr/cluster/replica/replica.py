"""One replica of the assigner, from its start to its end: when it leads it follows the cluster, and answers as soon as
all of that is known."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from prometheus_client.core import Metric

from edgeshare.contract.errors import Unavailable
from edgeshare.http import web
from edgeshare.http.pages import pages
from edgeshare.http.prometheus import exposition
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import Json, follow
from edgeshare.waiting import ended, first_of, told_to_end
from sharemgr.cluster.config import Config
from sharemgr.cluster.extender.metrics import certificate_ends
from sharemgr.cluster.replica.announcing import Announcement, announce, announcement
from sharemgr.cluster.replica.leading import TIMES, Leading, Term, alone, by_lease, by_scheduler
from sharemgr.cluster.replica.lease import LeaseTimes
from sharemgr.cluster.server.certificates import Certificates, ends_s
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.serving import Server, Verb

logger = logging.getLogger(__name__)

GARBAGE_OBJECTS = 20_000
"""So many new objects are made before circles are looked for among them: some 2 MiB."""


@dataclass(frozen=True, slots=True)
class Source:
    """Objects that are followed; the fields are Following's."""

    path: str
    selector: str
    keep: Callable[[Json], Any]
    listed: Callable[[list[Any]], None]
    changed: Callable[[str, Any], None]
    shape: Any


@dataclass(frozen=True, slots=True)
class Session:
    """What answers in one term, and is told of the cluster from its beginning on. All of it is called in the event
    loop."""

    verbs: Mapping[str, Verb]
    sources: Sequence[Source]
    run: Callable[[], Coroutine[Any, Any, None]]
    """What goes on beside the verbs, from the time when each source was listed until it is cancelled."""
    families: Callable[[], Iterable[Metric]]
    """The metrics meanwhile."""


class Core(Protocol):
    """What the replica serves."""

    def begin(self, calls: Calls) -> Session:
        """A session that knows nothing yet: what another leader did meanwhile is not to be guessed."""

    def beside(self, calls: Calls) -> AbstractAsyncContextManager[None]:
        """Entered for as long as the replica serves, whoever leads: what each of them does."""

    def families(self) -> Iterable[Metric]:
        """The metrics while there is no session."""

    def answered(self, verb: str, status: int) -> None:
        """Counts an answer, by its HTTP status."""

    def ended(self, kind: Ending) -> None:
        """Counts a connection that was ended, by why."""


class Replica:
    """One of two, or the only one."""

    def __init__(self, config: Config, core: Core, times: LeaseTimes = TIMES) -> None:
        """Raises InvalidRequest where it is to be announced and does not know as what."""
        self._config = config
        self._core = core
        self._times = times
        self._announcement = announcement(config)
        self._leading = Leading()
        self._current: _Running | None = None

    async def run(self, ready: Callable[[str], None]) -> None:
        """Serves until SIGTERM or SIGINT; calls ``ready`` with its URL when it listens. Raises InvalidRequest for
        certificates that cannot be used, Unavailable where there is no right to ask the API server, or where it cannot
        listen."""
        config, stop = self._config, told_to_end()
        calls = Calls(config.kubeconfig)
        certificates = Certificates(config.tls) if config.tls is not None else None
        if config.openness:
            logger.warning("%s", config.openness)
        clients = config.tls.clients if config.tls else ()
        server = Server(config.address, clients, self._verbs, self._core.answered, self._core.ended)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(calls.open())
            # The Lease is given back last, when nothing is being answered any more.
            self._leading = await stack.enter_async_context(self._leads(calls))
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(self._lead(calls, stop))
            if config.metrics_address:
                served = pages(partial(self._exposition, server, certificates), self._readiness)
                address = await stack.enter_async_context(web.serving(config.metrics_address, served))
                logger.info("metrics at http://%s/metrics", address)
            await stack.enter_async_context(self._core.beside(calls))
            url = await stack.enter_async_context(server.running(certificates.context if certificates else None))
            if certificates is not None:
                keeping = tasks.create_task(certificates.keep(server.use))
                stack.callback(keeping.cancel)
            ready(url)
            await stop.wait()
            logger.info("ending")

    def _leads(self, calls: Calls) -> AbstractAsyncContextManager[Leading]:
        if self._config.scheduler_lease is not None:
            return by_scheduler(self._config.scheduler_lease, calls, self._times)
        if self._config.lease is None:
            return alone()
        return by_lease(self._config.lease, calls, self._times)

    async def _lead(self, calls: Calls, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await first_of(stop, self._leading.began)
            term = self._leading.term
            if term is not None:
                async with self._running(calls, term) as work:
                    await first_of(stop, term.over, work)
                    if work.done():
                        # It never ends by itself: then this replica had better end, too, and begin anew.
                        work.result()

    @asynccontextmanager
    async def _running(self, calls: Calls, term: Term) -> AsyncIterator[asyncio.Task[None]]:
        session = self._core.begin(calls)
        running = _Running(term, session)
        self._current = running
        work = asyncio.create_task(running.work(calls, self._announcement))
        try:
            yield work
        finally:
            self._current = None
            await ended(work)

    def _verbs(self) -> Mapping[str, Verb]:
        if self._current is None or not self._current.term.holds:
            raise Unavailable(f"this replica does not lead: {self._leading.holder or 'none'} does")
        if self._current.unlisted:
            raise Unavailable(f"this replica leads, and is still reading {', '.join(sorted(self._current.unlisted))}")
        return self._current.session.verbs

    def _readiness(self) -> str:
        is_found = self._announcement is not None or self._config.scheduler_lease is not None
        if is_found and self._current is None and self._leading.holder:
            return f"stands by: {self._leading.holder} leads"
        self._verbs()
        return "ok"

    async def _exposition(self, server: Server, certificates: Certificates | None) -> bytes:
        own = {"assigner": certificates.end_s if certificates else None, "client": server.client_end_s}
        status = self._config.status
        files = {} if status is None else {"status": status.certificate, "status-client": status.managers.certificate}
        of_status = await asyncio.to_thread(ends_s, files)
        known = certificate_ends({whose: end_s for whose, end_s in own.items() if end_s is not None} | of_status)
        # A thread writes them down, so that no verb waits; what they are, is looked at here.
        return await asyncio.to_thread(exposition, [*self._families(), known])

    def _families(self) -> Iterable[Metric]:
        if self._current is None or not self._current.term.holds:
            return self._core.families()
        return self._current.session.families()


class _Running:
    """A session, and what is still to be read before it may answer."""

    def __init__(self, term: Term, session: Session) -> None:
        self.term = term
        self.session = session
        self.unlisted = {source.path for source in session.sources}
        self._whole = asyncio.Event()

    async def work(self, calls: Calls, announced: Announcement | None) -> None:
        """What the session does beside its verbs."""
        async with asyncio.TaskGroup() as tasks:
            for each in self.session.sources:
                told = (each.keep, self.listed(each), each.changed, each.shape)
                tasks.create_task(follow(calls, each.path, each.selector, *told))
            await self._whole.wait()
            # What was listed stays: going through it again and again would take up to 0.1 s each time. And what comes
            # and stays for a while, pods and what they hold, makes few circles: it is looked at less often.
            gc.freeze()
            gc.set_threshold(GARBAGE_OBJECTS)
            tasks.create_task(self.session.run())
            if announced is not None:
                tasks.create_task(announce(calls, announced))

    def listed(self, source: Source) -> Callable[[list[Any]], None]:
        """What its list is told to."""

        def listed(objects: list[Any]) -> None:
            source.listed(objects)
            if source.path in self.unlisted:
                logger.info("%d objects read at %s", len(objects), source.path)
                self.unlisted.discard(source.path)
                if not self.unlisted:
                    self._whole.set()

        return listed
