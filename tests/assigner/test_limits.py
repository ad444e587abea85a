"""Connections that say nothing, or too much, beside a client that is let in: which of them end, and what is kept of
them."""

import asyncio
import gc
import os
import resource
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress

import pytest

from edgeshare.log_limit import SAID_EVERY_NS
from sharemgr.cluster.config import Tls
from sharemgr.cluster.server import accepting
from sharemgr.cluster.server.accepting import (
    ACCEPT_AGAIN_S,
    CONNECTIONS_MAX,
    HANDSHAKE_S,
    HANDSHAKES_MAX,
    HANDSHAKES_PER_ADDRESS_MAX,
)
from sharemgr.cluster.server.bodies import Bodies
from sharemgr.cluster.server.certificates import tls_context
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.serving import BODY_BYTES_MAX, Server
from tests.kit.apiserver.certificates import Authority

SCHEDULER = "system:kube-scheduler"
SAFETY_S = 60
ASKED = b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1"
ANSWERED = b'\r\n\r\n"1"'

LetPass = Callable[[float], None]


class Client:
    """One connection, with TLS or without."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def is_answered(self) -> bool:
        """Asks, over the connection as it is."""
        self._writer.write(ASKED)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            return bool(await asyncio.wait_for(self._reader.readuntil(ANSWERED), SAFETY_S))
        return False

    async def begins(self, promised_bytes: int, sent_bytes: int) -> None:
        """Asks, and sends only a part of it."""
        head = f"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: {promised_bytes}\r\n\r\n"
        self._writer.write(head.encode() + b"x" * sent_bytes)
        await self._writer.drain()

    async def until_end(self) -> None:
        """Until the server ends it, having said nothing."""
        with suppress(ConnectionError):
            assert not await asyncio.wait_for(self._reader.read(), SAFETY_S)

    async def shake_hands(self, context: ssl.SSLContext) -> None:
        await self._writer.start_tls(context)

    def end(self) -> None:
        self._writer.transport.abort()


class Running:
    """The server, with what it told, and its clients."""

    def __init__(self, authority: Authority, stack: AsyncExitStack) -> None:
        self._authority = authority
        self._stack = stack
        self.now_ns = 0
        self.calls = 0
        self.ended: Counter[Ending] = Counter()
        self.server = Server(
            "127.0.0.1:0",
            (SCHEDULER,),
            lambda: {"filter": self.echo},
            lambda verb, status: None,
            lambda kind: self.ended.update([kind]),
            lambda: self.now_ns,
        )
        self.port = 0

    async def echo(self, body: bytes) -> object:
        self.calls += 1
        return body.decode()

    async def start(self) -> None:
        certificate, key = self._authority.issue("edgeshare", "edgeshare", hosts=("IP:127.0.0.1",))
        tls = Tls(certificate=certificate, private_key=key, client_authority=self._authority.certificate)
        url = await self._stack.enter_async_context(self.server.running(tls_context(tls)))
        self.port = int(url.rpartition(":")[2])

    def own(self, name: str = SCHEDULER) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._authority.certificate)
        context.load_cert_chain(*self._authority.issue(name, name))
        # The address is the server's, whatever it is reached by.
        context.check_hostname = False
        return context

    async def silent(self, address: str = "127.0.0.1") -> Client:
        """One that has connected and says nothing."""
        return await self._connect(address, None)

    async def client(self, name: str = SCHEDULER, address: str = "127.0.0.1") -> Client:
        """One that has shaken hands, as far as it knows."""
        return await self._connect(address, self.own(name))

    async def _connect(self, address: str, context: ssl.SSLContext | None) -> Client:
        opened = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, local_addr=(address, 0))
        client = Client(*opened)
        self._stack.callback(client.end)
        return client


@pytest.fixture
async def running(authority: Authority) -> AsyncIterator[Running]:
    async with AsyncExitStack() as stack:
        running = Running(authority, stack)
        await running.start()
        yield running


async def test_a_client_is_answered_however_many_say_nothing(running: Running, let_pass: LetPass) -> None:
    before = await running.client()
    for number in range(4 * HANDSHAKES_MAX):
        await running.silent(f"127.0.1.{1 + number % 16}")
    assert await before.is_answered()
    assert await (await running.client()).is_answered()


async def test_who_is_in_the_handshake_for_longest_of_an_address_ends_for_a_new_one_of_it(
    running: Running, let_pass: LetPass, caplog: pytest.LogCaptureFixture
) -> None:
    silent = [await running.silent("127.0.0.2") for _ in range(HANDSHAKES_PER_ADDRESS_MAX + 1)]
    await silent[0].until_end()
    for client in silent[1:]:
        await client.shake_hands(running.own())
        assert await client.is_answered()
    assert running.ended == {Ending.HANDSHAKES: 1}
    assert caplog.messages == [
        f"a connection of 127.0.0.2 is ended: {HANDSHAKES_MAX} may be in the handshake, "
        f"{HANDSHAKES_PER_ADDRESS_MAX} of one address, and one came from 127.0.0.2"
    ]


async def test_who_is_in_the_handshake_for_longest_ends_where_there_are_too_many(
    running: Running, let_pass: LetPass
) -> None:
    silent = [await running.silent(f"127.0.1.{number}") for number in range(1, HANDSHAKES_MAX + 2)]
    await silent[0].until_end()
    for client in silent[1:]:
        await client.shake_hands(running.own())
        assert await client.is_answered()


async def test_a_handshake_has_a_time(running: Running, let_pass: LetPass) -> None:
    late, silent = await running.silent(), await running.silent()
    other = await running.client()
    let_pass(0.99 * HANDSHAKE_S)
    assert await other.is_answered()
    await late.shake_hands(running.own())
    assert await late.is_answered()
    let_pass(0.02 * HANDSHAKE_S)
    await silent.until_end()
    assert running.ended == {Ending.SLOW: 1}
    assert HANDSHAKE_S < 5


async def test_nothing_is_kept_of_who_was_sent_away(running: Running, let_pass: LetPass) -> None:
    for _ in range(5):
        silent = [await running.silent("127.0.0.2") for _ in range(HANDSHAKES_MAX)]
        for client in silent[:-HANDSHAKES_PER_ADDRESS_MAX]:
            await client.until_end()
    assert await (await running.client()).is_answered()
    kept = [each for each in gc.get_objects() if isinstance(each, accepting._Accepted)]
    assert len(kept) == HANDSHAKES_PER_ADDRESS_MAX + 1


async def test_who_speaks_no_tls_ends_and_is_told_of(
    running: Running, let_pass: LetPass, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await (await running.silent()).is_answered()
    assert running.ended == {Ending.HANDSHAKE: 1}
    assert caplog.messages == ["a connection of 127.0.0.1 is ended: its handshake failed: HTTP_REQUEST"]


async def test_who_leaves_in_the_handshake_is_not_told_of(running: Running, let_pass: LetPass) -> None:
    for _ in range(HANDSHAKES_PER_ADDRESS_MAX):
        (await running.silent()).end()
    assert await (await running.client()).is_answered()
    assert not running.ended


async def test_whose_certificate_names_nobody_who_is_let_in_ends_before_it_asks(
    running: Running, let_pass: LetPass, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await (await running.client("system:node:n1")).until_end()
    running.now_ns += SAID_EVERY_NS
    await (await running.client("nobody\nline")).until_end()
    assert running.ended == {Ending.NAME: 4}
    assert caplog.messages == [
        "a connection of 127.0.0.1 is ended: the client's certificate names 'system:node:n1': "
        f"let in are {SCHEDULER} (tls.clients)",
        "a connection of 127.0.0.1 is ended: the client's certificate names 'nobody\\nline': "
        f"let in are {SCHEDULER} (tls.clients) (2 more since the last such line)",
    ]


async def test_of_those_that_are_let_in_the_one_that_said_nothing_for_longest_ends(
    running: Running, let_pass: LetPass
) -> None:
    first, second = await running.client(), await running.client()
    assert await second.is_answered()
    assert await first.is_answered()
    others = [await running.client() for _ in range(CONNECTIONS_MAX - 1)]
    await second.until_end()
    assert await first.is_answered()
    assert await others[0].is_answered()
    assert running.ended == {Ending.CONNECTIONS: 1}


async def test_bodies_that_are_not_sent_on_are_bounded_over_all_connections(running: Running) -> None:
    running.server.bodies = Bodies(BODY_BYTES_MAX)
    clients = [await running.client() for _ in range(20)]
    for client in clients:
        await client.begins(BODY_BYTES_MAX, BODY_BYTES_MAX // 8)
    there = {asyncio.create_task(client.until_end()) for client in clients}
    while len(there) > 8:
        _, there = await asyncio.wait(there, return_when=asyncio.FIRST_COMPLETED)
    assert running.server.bodies.bytes <= BODY_BYTES_MAX
    assert await (await running.client()).is_answered()
    for client in clients:
        client.end()
    await asyncio.wait(there)
    while running.server.bodies.bytes:  # noqa: ASYNC110 (nobody else is told of it)
        await asyncio.sleep(0)


@contextmanager
def without_descriptors() -> Iterator[None]:
    """This process can open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_connections_are_accepted_again_when_there_are_descriptors_for_them(
    running: Running, let_pass: LetPass, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as early:
        with without_descriptors():
            early.connect(("127.0.0.1", running.port))
            # The listener is heard of in one turn of the event loop, and accepted from in the next.
            for _ in range(100):
                await asyncio.sleep(0)
        assert caplog.messages == ["no connection can be accepted for a moment: Too many open files"]
        let_pass(ACCEPT_AGAIN_S)
        opened = await asyncio.open_connection(sock=early, ssl=running.own(), server_hostname="")
        client = Client(*opened)
        assert await client.is_answered()
        client.end()
