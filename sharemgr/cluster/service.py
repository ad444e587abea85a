"""The assigner as a service: puts its parts together, anew for each term."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from time import monotonic, monotonic_ns
from typing import TypeVar

from prometheus_client.core import Metric

from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import Json, read
from edgeshare.log_limit import LogLimit
from sharemgr.cluster.config import Choice, Config
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.extender.metrics import Metrics
from sharemgr.cluster.extender.verbs import Verbs
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.replica.api import KubeApi
from sharemgr.cluster.replica.replica import Session, Source
from sharemgr.cluster.replica.retrying import Retrying
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.state.accelerators import parse_node
from sharemgr.cluster.state.books import Books
from sharemgr.cluster.state.cores import Offer, parse_offer
from sharemgr.cluster.state.object_fields import AcceleratorNodeFields, NodeFields, PodFields
from sharemgr.cluster.state.pods import parse_pod

logger = logging.getLogger(__name__)

T = TypeVar("T")

SETTLE_S = 5.0
"""How often it is looked for Bindings that nobody told of; one is looked up after twice as long. And for so long at
least, at most twice as long, what filter answered is kept: kube-scheduler itself gives a bind 5 s (``httpTimeout``)."""

IDLE_S = 600.0
"""A pod that was not filtered for so long, or twice that, is gone: kube-scheduler tries each again within five minutes
or so (podMaxInUnschedulablePodsDuration)."""


FAULTS_BURST = 30
"""Lines at once, and then six a minute: the metrics count them all, and a node that goes makes one for each of its
pods."""


class Service:
    """What a replica of the assigner serves (``replica.Core``)."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._metrics = Metrics()
        self._answers = cache(self._metrics.answers.labels)

    def begin(self, calls: Calls) -> Session:
        """See Core."""
        config, api = self._config, KubeApi(calls, self._metrics.binding_seconds.time)
        assigner = Assigner(POLICIES[config.policy], keeps_choice=config.choice is Choice.FILTER)
        binder = Binder(assigner, api, config.bind_timeout_s, monotonic)
        retrying = Retrying(assigner, api, self._metrics)

        async def run() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(retrying.run())
                tasks.create_task(_settle(assigner, binder, retrying))
                tasks.create_task(_forget_idle(assigner))

        def told(tell: Callable[[str, T], None]) -> Callable[[str, T], None]:
            def tell_both(kind: str, what: T) -> None:
                tell(kind, what)
                retrying.news()

            return tell_both

        node = partial(read, partial(parse_node, known=assigner.books.ledger.node))
        pod = partial(read, partial(parse_pod, bound=assigner.books.pod, reserved=binder.reserved))
        return Session(
            verbs=Verbs(assigner, binder, self._metrics).by_name,
            sources=(
                # Bound ones: what waits to be bound has no part in the ledger.
                Source(
                    "/api/v1/pods", "spec.nodeName!=", pod, assigner.pods_listed, told(assigner.pod_told), PodFields
                ),
                Source(
                    ACCELERATOR_NODES,
                    "",
                    node,
                    assigner.nodes_listed,
                    told(assigner.node_told),
                    AcceleratorNodeFields,
                ),
                Source("/api/v1/nodes", "", _offer, assigner.offers_listed, told(assigner.offer_told), NodeFields),
            ),
            run=run,
            families=lambda: self._metrics.families(assigner, binder),
        )

    @asynccontextmanager
    async def beside(self, calls: Calls) -> AsyncIterator[None]:
        """See Core."""
        async with AsyncExitStack() as stack:
            if self._config.status is not None:
                # Loaded only where it is configured: the assigner needs no gRPC.
                from sharemgr.cluster.status import cluster_status  # noqa: PLC0415

                address = await stack.enter_async_context(cluster_status.serving(self._config.status, calls))
                logger.info("the cluster's status at %s, over TLS", address)
            yield

    def families(self) -> Iterable[Metric]:
        """See Core."""
        return self._metrics.families(None, None)

    def answered(self, verb: str, status: int) -> None:
        """See Core."""
        self._answers(verb, status).inc()

    def ended(self, kind: Ending) -> None:
        """See Core."""
        self._metrics.ended.labels(kind).inc()


class Faults:
    """Says in the log, once, what is wrong with what pods and nodes tell, and which GPUs are over-committed."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._said: set[str] = set()
        self._limit = LogLimit(FAULTS_BURST)

    def say(self) -> None:
        """Says what is new since the last time."""
        now = {*self._books.flagged.values(), *self._books.faults.values(), *self._books.overcommitted()}
        for text in sorted(now - self._said):
            more = self._limit.ending(monotonic_ns())
            if more is not None:
                logger.warning("%s%s", text, more)
        self._said = now


async def _settle(assigner: Assigner, binder: Binder, retrying: Retrying) -> None:
    faults = Faults(assigner.books)
    while True:
        await asyncio.sleep(SETTLE_S)
        assigner.promises.lapse()
        await binder.settle()
        faults.say()
        # What was given up, found gone or listed anew has released something, of which no watch tells.
        retrying.news()


async def _forget_idle(assigner: Assigner) -> None:
    while True:
        await asyncio.sleep(IDLE_S)
        assigner.forget_idle()


def _offer(thing: Json) -> Offer | None:
    return read(parse_offer, thing)
