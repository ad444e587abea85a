"""The one call that is answered over TCP, to whom, and what may be asked of it at most."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from time import monotonic

import grpc

from edgeshare import grpc_tls
from edgeshare.contract.address import join_address, parse_address
from edgeshare.rpc import Context
from edgeshare.tls_files import why_not_let_in
from edgeshare.v1.status_pb2 import DESCRIPTOR, GetNodeStatusRequest, NodeStatus
from sharemgr.node.config import RemoteStatus
from sharemgr.node.node import Node

CALLS_MAX = 8
"""At a time: there are some replicas of the cluster part, and each has one call under way."""

FRESH_S = 0.5
"""Who asks more often is told the same once more."""


class RemoteStatusService:
    """``GetNodeStatus`` of ShareStatus. What streams there is UNIMPLEMENTED here: it costs the loop that grants for as
    long as it goes on."""

    def __init__(self, node: Node, clients: Collection[str]) -> None:
        """``clients``: the common names that are let in."""
        self._node = node
        self._clients = frozenset(clients)
        self._making = asyncio.Lock()
        self._made_at_s = -FRESH_S
        self._status = NodeStatus()

    def handler(self) -> "grpc.GenericRpcHandler[GetNodeStatusRequest, NodeStatus]":
        """What a server is given."""
        call = grpc.unary_unary_rpc_method_handler(
            self._get,
            request_deserializer=GetNodeStatusRequest.FromString,
            response_serializer=NodeStatus.SerializeToString,
        )
        name = DESCRIPTOR.services_by_name["ShareStatus"].full_name
        return grpc.method_handlers_generic_handler(name, {"GetNodeStatus": call})

    async def _get(self, request: GetNodeStatusRequest, context: Context) -> NodeStatus:
        why = why_not_let_in(grpc_tls.common_names(context), self._clients, "remote_status.clients")
        if why:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, why)
        async with self._making:
            if monotonic() >= self._made_at_s + FRESH_S:
                self._status = await self._node.status()
                self._made_at_s = monotonic()
            return self._status


@asynccontextmanager
async def serving(config: RemoteStatus, node: Node) -> AsyncIterator[str]:
    """Serves while it is entered; yields the address. Raises InvalidRequest for files that cannot be used, Unavailable
    where it cannot listen."""
    server = grpc.aio.server(maximum_concurrent_rpcs=CALLS_MAX, options=grpc_tls.SERVER_OPTIONS)
    server.add_generic_rpc_handlers((RemoteStatusService(node, config.clients).handler(),))
    port = grpc_tls.listen(server, config.address, grpc_tls.server_credentials(config))
    await server.start()
    try:
        yield join_address(parse_address(config.address)[0], port)
    finally:
        await server.stop(grace=None)
