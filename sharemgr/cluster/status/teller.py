"""What is told of the cluster's nodes: asked of those that a query concerns, and put together."""

import asyncio
from collections.abc import Iterator, Mapping
from time import time_ns

from edgeshare.contract.errors import NotFound, Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.v1.cluster_pb2 import ClusterState
from edgeshare.waiting import first_of
from sharemgr.cluster.status.directory import Directory
from sharemgr.cluster.status.managers import Managers, Told
from sharemgr.cluster.status.query import Query, view

KNOWN_S = 5.0
"""How long who asks waits for the nodes to be listed, at the start."""

PROBE_S = 5.0
"""How often it is looked whether the API server answers."""


class Contact:
    """Since when the API server does not answer."""

    def __init__(self) -> None:
        self.stale_since_ns = time_ns()
        """In Unix time; 0: it does."""

    async def keep(self, calls: Calls) -> None:
        """Looks again and again, until it is cancelled."""
        answered_ns = self.stale_since_ns
        while True:
            try:
                await calls.call("GET", "/version")
                answered_ns, self.stale_since_ns = time_ns(), 0
            except Unavailable:
                self.stale_since_ns = answered_ns
            await asyncio.sleep(PROBE_S)


class Teller:
    """The nodes, as each tells now or told last."""

    def __init__(self, directory: Directory, managers: Managers, contact: Contact) -> None:
        self._directory = directory
        self._managers = managers
        self._contact = contact

    async def parts(self, query: Query, after: str, part_bytes: int) -> Iterator[ClusterState]:
        """What a query is answered with, of the nodes that come after one, in messages of so many bytes and one node
        more; at least one. Raises NotFound for a pod that is nowhere, Unavailable where no node is known yet."""
        return self._parts(await self._told(query, after), query, part_bytes)

    async def whole(self, query: Query) -> ClusterState:
        """What a query is answered with, however much that is. Raises as ``parts``."""
        told = await self._told(query, "")
        state = self._state()
        for name, each in told.items():
            _add(state, name, each, query)
        return state

    async def _told(self, query: Query, after: str) -> Mapping[str, Told]:
        await first_of(self._directory.known, timeout_s=KNOWN_S)
        if not self._directory.known.is_set():
            raise Unavailable("the cluster part is still reading which nodes there are: ask again, its log may say why")
        names = [name for name in self._directory.nodes(query) if name > after]
        if query.pod and not names and not after:
            raise NotFound(f"no node has an allocation of {query}: is it running, and does it ask for a share?")
        await self._managers.keep(self._directory.nodes(Query()))
        return await self._managers.ask(names)

    def _parts(self, told: Mapping[str, Told], query: Query, part_bytes: int) -> Iterator[ClusterState]:
        left = list(told)
        while True:
            state, size = self._state(), 0
            while left and size < part_bytes:
                name = left.pop(0)
                size += _add(state, name, told[name], query)
            state.more = bool(left)
            yield state
            if not left:
                return

    def _state(self) -> ClusterState:
        return ClusterState(at_ns=time_ns(), stale_since_ns=self._contact.stale_since_ns)


def _add(state: ClusterState, name: str, told: Told, query: Query) -> int:
    """Adds a node; returns its bytes."""
    node = state.nodes.add(node=name, told_at_ns=told.at_ns, error=told.error)
    if told.status is not None:
        node.status.CopyFrom(view(told.status, query))
    return node.ByteSize()
