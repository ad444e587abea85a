"""What the cluster's page shows: of all nodes, looked at again and again, and of a namespace while somebody follows
it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from edgeshare.contract.errors import EdgeshareError
from edgeshare.shown.feed import CLUSTER_LOOK_S, LOOKS_MISSED, Feed
from edgeshare.shown.service_picture import service_picture, used_on_nodes
from edgeshare.shown.used import Used
from edgeshare.shown.waiting_pods import Waiting
from edgeshare.v1.cluster_pb2 import ClusterState
from edgeshare.waiting import first_of
from sharemgr.cluster.status.query import Query

UNLISTED = "they are still being read, or may not be: the cluster part's log says why"


class WaitingPods:
    """The pods that wait for a node, as the API server tells. All calls are immediate."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Waiting] | None = None

    def listed(self, pods: Iterable[Waiting]) -> None:
        """Takes in a list of all pods that wait."""
        self._pods = {(pod.namespace, pod.pod): pod for pod in pods}

    def told(self, kind: str, pod: Waiting) -> None:
        """One is there, was changed, or is DELETED: gone, or waiting no more."""
        assert self._pods is not None
        self._pods.pop((pod.namespace, pod.pod), None)
        if kind != "DELETED":
            self._pods[pod.namespace, pod.pod] = pod

    def of(self, namespace: str) -> tuple[list[Waiting], str]:
        """The pods that wait in a namespace, or in all where it is empty, by names; and why they are not
        known, where that is so."""
        if self._pods is None:
            return [], UNLISTED
        found = [pod for (of, _), pod in sorted(self._pods.items()) if namespace in ("", of)]
        return found, ""


class PageFeeds:
    """A feed for all, and one for each namespace that is followed. All of it is of one event loop."""

    def __init__(
        self,
        tell: Callable[[Query], Awaitable[ClusterState]],
        waiting: WaitingPods,
        now_ns: Callable[[], int],
        unix_ns: Callable[[], int],
    ) -> None:
        """``tell`` is Teller.whole; ``now_ns`` is monotonic."""
        self._tell = tell
        self._waiting = waiting
        self._make = partial(Feed, LOOKS_MISSED * CLUSTER_LOOK_S, now_ns, unix_ns)
        self._feeds = {Query(): self._make()}
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        await self._look(Query(), self._feeds[Query()])
        while True:
            await first_of(self._hurry, timeout_s=CLUSTER_LOOK_S)
            self._hurry.clear()
            for query, feed in list(self._feeds.items()):
                if feed.due():
                    await self._look(query, feed)

    @contextmanager
    def followed(self, query: Query) -> Iterator[Feed]:
        """Gives the feed of it, to be followed at once."""
        if query not in self._feeds:
            self._feeds[query] = self._make()
            self._hurry.set()
        feed = self._feeds[query]
        try:
            yield feed
        finally:
            if query != Query() and not feed.is_followed:
                self._feeds.pop(query, None)

    async def _look(self, query: Query, feed: Feed) -> None:
        try:
            state = await self._tell(query)
        except EdgeshareError as error:
            feed.lose(str(error))
            return
        used = Used(state, *self._waiting.of(query.namespace), query.namespace)
        feed.take(partial(service_picture, used), used_on_nodes(used))
