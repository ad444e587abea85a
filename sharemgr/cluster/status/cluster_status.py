"""The gRPC service of the cluster's status: asks whether a caller may know, asks the nodes, and answers."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

import grpc
from grpc_reflection.v1alpha import reflection

from edgeshare import grpc_tls
from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import InvalidRequest, NoRoom
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.contract.object_names import NAME_MAX
from edgeshare.contract.units import NS_PER_S
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import follow, read
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
from sharemgr.cluster.config import Status
from sharemgr.cluster.replica.announcing import slices_path
from sharemgr.cluster.status import page
from sharemgr.cluster.status.directory import Directory, parse_endpoints, parse_placed
from sharemgr.cluster.status.managers import Managers
from sharemgr.cluster.status.query import Query
from sharemgr.cluster.status.rights import Rights, token_of
from sharemgr.cluster.status.teller import Contact, Teller

CALLS_MAX = 64
"""At a time."""

WATCHES_MAX = 48
"""Of these: who wants to know once is answered, too."""

INTERVAL_NS = 5 * NS_PER_S
INTERVAL_NS_MIN = NS_PER_S

PART_BYTES = 1 << 20
"""Of a message, and one node more: gRPC's clients take 4 MiB as shipped."""


class ClusterStatusService(ClusterStatusServicer):
    """The service ClusterStatus; read only."""

    def __init__(self, teller: Teller, rights: Rights) -> None:
        self._teller = teller
        self._rights = rights
        self._watches = 0

    async def GetClusterStatus(self, request: GetClusterStatusRequest, context: Context) -> ClusterState:
        async with errors_told(context):
            query, token = _query(request.query), token_of(context.invocation_metadata())
            await self._rights.check(token, query)
            return next(await self._teller.parts(query, request.after, PART_BYTES))

    async def WatchCluster(self, request: WatchClusterRequest, context: Context) -> AsyncIterator[ClusterState]:
        interval_ns = request.interval_ns or INTERVAL_NS
        async with errors_told(context):
            query, token = _query(request.query), token_of(context.invocation_metadata())
            if interval_ns < INTERVAL_NS_MIN:
                raise InvalidRequest(f"interval_ns {interval_ns} is too short: ask for {INTERVAL_NS_MIN} or more, or 0")
            with self._watch():
                while True:
                    await self._rights.check(token, query)
                    for part in await self._teller.parts(query, "", PART_BYTES):
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


def _query(query: ClusterQuery) -> Query:
    if query.pod and not query.namespace:
        raise InvalidRequest(f"pod {query.pod[:NAME_MAX]!r} is named without its namespace: name that, too")
    return Query(query.namespace, query.pod)


@asynccontextmanager
async def serving(config: Status, calls: Calls) -> AsyncIterator[str]:
    """Serves while it is entered; yields the address. Raises InvalidRequest for files that cannot be used, Unavailable
    where it cannot listen."""
    directory, contact, rights = Directory(config.managers.service), Contact(), Rights(calls)
    managers = Managers(config.managers, directory.addresses)
    teller = Teller(directory, managers, contact)
    server = grpc.aio.server(maximum_concurrent_rpcs=CALLS_MAX, options=grpc_tls.SERVER_OPTIONS)
    add_ClusterStatusServicer_to_server(ClusterStatusService(teller, rights), server)
    names = (DESCRIPTOR.services_by_name["ClusterStatus"].full_name, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    own = TlsFiles(certificate=config.certificate, private_key=config.private_key)
    port = grpc_tls.listen(server, config.address, grpc_tls.server_credentials(own))
    slices = slices_path(config.managers.service.namespace)
    told_of_endpoints = (partial(read, parse_endpoints), directory.endpoints_listed, directory.endpoints_told)
    told_of_nodes = (partial(read, parse_placed), directory.nodes_listed, directory.node_told)
    # What ends by itself, which none of them does, ends the whole: else old news would be told as that of now.
    async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        stack.push_async_callback(managers.close)
        for work in (
            follow(calls, slices, "", *told_of_endpoints),
            follow(calls, ACCELERATOR_NODES, "", *told_of_nodes),
            contact.keep(calls),
        ):
            stack.callback(group.create_task(work).cancel)
        if config.page_address:
            await stack.enter_async_context(page.serving(config, calls, teller, rights))
        stack.push_async_callback(server.stop, grace=None)
        await server.start()
        yield join_address(parse_address(config.address)[0], port)
