"""Asks the nodes' share managers, no more often and no longer than is good for them, and keeps what each told last."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic, time_ns

import grpc
from grpc.aio import AioRpcError, Channel

from edgeshare.contract.names import MANAGERS_TLS_NAME
from edgeshare.contract.text import in_one_line
from edgeshare.tls_files import Held, Pems, TlsFiles
from edgeshare.v1.status_pb2 import GetNodeStatusRequest, NodeStatus
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from edgeshare.waiting import ended

FRESH_S = 1.0
"""What a node told within so long is told to others, too."""

AGAIN_S = 10.0
"""A node that did not answer is left alone for so long."""

CALL_S = 3.0
"""A manager answers in milliseconds; the rest is for the way there and a handshake."""

ANSWER_S = 4.0
"""Who asks is answered by then, with what is known of the others: one call and the wait for a place."""

CALLS_MAX = 64
"""At a time."""

STATUS_BYTES_MAX = 4 << 20
"""A node with eight GPUs of which each has a hundred allocations has 0.4 MiB to tell."""

REASON_MAX = 300
"""Characters of what a node says of its failure."""

AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
"""What is told of one that cannot be reached; any other code is its own answer."""

OPTIONS = (
    ("grpc.ssl_target_name_override", MANAGERS_TLS_NAME),
    ("grpc.max_receive_message_length", STATUS_BYTES_MAX),
    # It reaches pods of its own cluster.
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Of a cluster of thousands of nodes none is kept connected whom nobody asks about.
    ("grpc.client_idle_timeout_ms", 60_000),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a node."""

    status: NodeStatus | None = None
    """As it told last; None: it never did."""
    at_ns: int = 0
    """When that was, in Unix time."""
    error: str = ""
    """Why it is not of now; empty: it is."""


@dataclass(slots=True)
class _Asked:
    told: Told = field(default_factory=Told)
    due_s: float = 0.0
    """Not to be asked before."""
    asking: asyncio.Task[None] | None = None
    channels: dict[str, Channel] = field(default_factory=dict)
    """By address."""
    held: Held | None = None
    """What they were made with."""


class Managers:
    """Asks the managers of all nodes."""

    def __init__(
        self,
        tls: TlsFiles,
        addresses: Callable[[str], tuple[str, ...]],
        clock: Callable[[], float] = monotonic,
        call_s: float = CALL_S,
    ) -> None:
        """``addresses``: where a node's manager may be asked; one is, after the other. Raises InvalidRequest for files
        that cannot be used."""
        self._pems = Pems(tls)
        self._addresses = addresses
        self._clock = clock
        self._call_s = call_s
        self._nodes: dict[str, _Asked] = {}
        self._places = asyncio.Semaphore(CALLS_MAX)

    async def ask(self, nodes: Iterable[str]) -> dict[str, Told]:
        """What each tells now, or told before, with why. Those that are not through in ANSWER_S go on meanwhile."""
        asked = {name: self._nodes.setdefault(name, _Asked()) for name in nodes}
        waited = [task for name, node in asked.items() if (task := self._begin(name, node)) is not None]
        if waited:
            await asyncio.wait(waited, timeout=ANSWER_S)
        return {name: _answer(node) for name, node in asked.items()}

    async def keep(self, nodes: Iterable[str]) -> None:
        """Forgets all but these."""
        gone = [self._nodes.pop(name) for name in self._nodes.keys() - set(nodes)]
        await asyncio.gather(*map(_end, gone))

    async def close(self) -> None:
        """Ends what is being asked, and all connections."""
        await self.keep(())

    def _begin(self, name: str, node: _Asked) -> asyncio.Task[None] | None:
        if node.asking is None and self._clock() >= node.due_s:
            node.asking = asyncio.create_task(self._ask(name, node))
        return node.asking

    async def _ask(self, name: str, node: _Asked) -> None:
        try:
            async with self._places:
                node.told = await self._from_any(name, node)
        finally:
            node.due_s = self._clock() + (AGAIN_S if node.told.error else FRESH_S)
            node.asking = None

    async def _from_any(self, name: str, node: _Asked) -> Told:
        held, addresses = self._pems.held, self._addresses(name)
        for address in [each for each in node.channels if held != node.held or each not in addresses]:
            await node.channels.pop(address).close(None)
        node.held = held
        error = "no address of its share manager is known: is remote_status configured there, and is it ready?"
        for address in addresses:
            try:
                if address not in node.channels:
                    node.channels[address] = _channel(address, held)
                stub = ShareStatusStub(node.channels[address])
                status = await stub.GetNodeStatus(GetNodeStatusRequest(), timeout=self._call_s)
                # gRPC gives None for what cannot be parsed.
                if isinstance(status, NodeStatus):
                    return Told(status, time_ns())
                error = f"what answers at {address} tells no status: is it another version's?"
            except AioRpcError as told:
                why = in_one_line(told.details() or "", REASON_MAX)
                does = "does not answer" if told.code() in AWAY else "tells no status"
                error = f"its share manager {does} at {address}: {told.code().name} {why}"
        return Told(node.told.status, node.told.at_ns, error)


def _channel(address: str, held: Held) -> Channel:
    key, certificate, authority = held
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(authority, key, certificate), OPTIONS)


def _answer(node: _Asked) -> Told:
    if node.asking is None:
        return node.told
    return Told(node.told.status, node.told.at_ns, node.told.error or f"it has not answered within {ANSWER_S:g} s")


async def _end(node: _Asked) -> None:
    if node.asking is not None:
        await ended(node.asking)
    for channel in node.channels.values():
        await channel.close(None)
