"""The gRPC service of the cluster's status: asks whether a caller may know, asks the nodes, and answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from time import time_ns

import grpc
from grpc_reflection.v1alpha import reflection

from edgeshare import grpc_tls
from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.contract.units import NS_PER_S
from edgeshare.kube.calls import Calls
from edgeshare.rpc import Context, errors_told
from edgeshare.tls_files import TlsFiles
from edgeshare.v1.cluster_pb2 import (
    DESCRIPTOR,
    ClusterQuery,
    ClusterState,
    GetClusterStatusRequest,
    WatchClusterRequest,
)
from edgeshare.v1.cluster_pb2_grpc import ClusterStatusServicer, add_ClusterStatusServicer_to_server
from edgeshare.waiting import first_of
from sharemgr.cluster.config import Status
from sharemgr.cluster.replica.announcing import slices_path
from sharemgr.cluster.replica.following import follow, read
from sharemgr.cluster.status.asking import Asking, Told
from sharemgr.cluster.status.directory import Directory, parse_endpoints, parse_placed
from sharemgr.cluster.status.query import Query, view
from sharemgr.cluster.status.rights import Rights, token_of

CALLS_MAX = 64
"""At a time."""

WATCHES_MAX = 48
"""Of these: who wants to know once is answered, too."""

INTERVAL_NS = 5 * NS_PER_S
INTERVAL_NS_MIN = NS_PER_S

PART_BYTES = 1 << 20
"""Of a message, and one node more: gRPC's clients take 4 MiB as shipped."""

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


class ClusterStatusService(ClusterStatusServicer):
    """The service ClusterStatus; read only."""

    def __init__(self, directory: Directory, asking: Asking, rights: Rights, contact: Contact) -> None:
        self._directory = directory
        self._asking = asking
        self._rights = rights
        self._contact = contact
        self._watches = 0

    async def GetClusterStatus(self, request: GetClusterStatusRequest, context: Context) -> ClusterState:
        async with errors_told(context):
            query, token = _query(request.query), token_of(context.invocation_metadata())
            await self._rights.check(token, query)
            return next(self._parts(await self._told(query, request.after), query))

    async def WatchCluster(self, request: WatchClusterRequest, context: Context) -> AsyncIterator[ClusterState]:
        interval_ns = request.interval_ns or INTERVAL_NS
        async with errors_told(context):
            query, token = _query(request.query), token_of(context.invocation_metadata())
            if interval_ns < INTERVAL_NS_MIN:
                raise InvalidRequest(f"interval_ns {interval_ns} is too short: ask for {INTERVAL_NS_MIN} or more, or 0")
            with self._watch():
                while True:
                    await self._rights.check(token, query)
                    for part in self._parts(await self._told(query, ""), query):
                        yield part
                    await asyncio.sleep(interval_ns / NS_PER_S)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        if self._watches >= WATCHES_MAX:
            raise NoRoom(f"{WATCHES_MAX} watch already: ask once (GetClusterStatus), or later")
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1

    async def _told(self, query: Query, after: str) -> dict[str, Told]:
        await first_of(self._directory.known, timeout_s=KNOWN_S)
        if not self._directory.known.is_set():
            raise Unavailable("the cluster part is still reading which nodes there are: ask again, its log may say why")
        names = [name for name in self._directory.nodes(query) if name > after]
        if query.pod and not names and not after:
            raise NotFound(f"no node has an allocation of {query}: is it running, and does it ask for a share?")
        await self._asking.keep(self._directory.nodes(Query()))
        return await self._asking.ask(names)

    def _parts(self, told: dict[str, Told], query: Query) -> Iterator[ClusterState]:
        """At least one."""
        left = list(told)
        while True:
            state, size = ClusterState(at_ns=time_ns(), stale_since_ns=self._contact.stale_since_ns), 0
            while left and size < PART_BYTES:
                name = left.pop(0)
                node = state.nodes.add(node=name, told_at_ns=told[name].at_ns, error=told[name].error)
                status = told[name].status
                if status is not None:
                    node.status.CopyFrom(view(status, query))
                size += node.ByteSize()
            state.more = bool(left)
            yield state
            if not left:
                return


def _query(query: ClusterQuery) -> Query:
    if query.pod and not query.namespace:
        raise InvalidRequest(f"pod {query.pod[:NAME_MAX]!r} is named without its namespace: name that, too")
    return Query(query.namespace, query.pod)


@asynccontextmanager
async def serving(config: Status, calls: Calls) -> AsyncIterator[str]:
    """Serves while it is entered; yields the address. Raises InvalidRequest for files that cannot be used, Unavailable
    where it cannot listen."""
    directory = Directory(config.managers.service)
    asking = Asking(config.managers, directory.addresses)
    server = grpc.aio.server(maximum_concurrent_rpcs=CALLS_MAX, options=grpc_tls.SERVER_OPTIONS)
    contact = Contact()
    service = ClusterStatusService(directory, asking, Rights(calls), contact)
    add_ClusterStatusServicer_to_server(service, server)
    names = (DESCRIPTOR.services_by_name["ClusterStatus"].full_name, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    own = TlsFiles(certificate=config.certificate, private_key=config.private_key)
    port = grpc_tls.listen(server, config.address, grpc_tls.server_credentials(own))
    slices = slices_path(config.managers.service.namespace)
    told_of_endpoints = (partial(read, parse_endpoints), directory.endpoints_listed, directory.endpoints_told)
    told_of_nodes = (partial(read, parse_placed), directory.nodes_listed, directory.node_told)
    # What ends by itself, which none of them does, ends the whole: else old news would be told as that of now.
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(follow(calls, slices, "", *told_of_endpoints)),
            group.create_task(follow(calls, ACCELERATOR_NODES, "", *told_of_nodes)),
            group.create_task(contact.keep(calls)),
        ]
        try:
            await server.start()
            yield join_address(parse_address(config.address)[0], port)
        finally:
            await server.stop(grace=None)
            for task in tasks:
                task.cancel()
            await asking.close()
