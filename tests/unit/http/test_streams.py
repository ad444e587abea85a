"""Answers that go on, to those who take them, take nothing, and are too many; and under which names they are served."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus

import pytest

from edgeshare.http.answering import Page, Request, Stream, text_page
from edgeshare.http.web import ANSWER_S, CONNECTIONS_MAX, STREAMS_MAX, Terms, serving
from tests.kit.pages.site_client import SAFETY_S, Client

PART_BYTES = 64 << 20
"""More than the kernel keeps of what nobody reads."""
FOLLOW = b"GET /events HTTP/1.1\r\nHost: here\r\n\r\n"
ASK = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class Streams:
    """A page, and an answer that goes on: of small parts that the test gives, or of large ones without end."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.port = 0
        self.parts: list[asyncio.Queue[bytes]] = []
        """Of each who follows."""
        self.large_made = 0

    async def page(self, _: Request) -> Page:
        return text_page(HTTPStatus.OK, "ok")

    async def events(self, _: Request) -> Stream:
        return Stream("text/event-stream", self._given())

    async def large(self, _: Request) -> Stream:
        return Stream("text/event-stream", self._large())

    async def _given(self) -> AsyncGenerator[bytes, None]:
        parts: asyncio.Queue[bytes] = asyncio.Queue()
        self.parts.append(parts)
        yield b"first\n"
        while part := await parts.get():
            yield part

    async def _large(self) -> AsyncGenerator[bytes, None]:
        while True:
            self.large_made += 1
            yield bytes(PART_BYTES)

    async def connect(self, said: bytes) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self._stack.callback(client.end)
        client.say(said)
        return client

    async def follow(self, said: bytes = FOLLOW) -> Client:
        """One who follows, and has the first part."""
        client = await self.connect(said)
        assert (await client.reader.readuntil(b"first\n")).startswith(b"HTTP/1.1 200 OK\r\n")
        return client


@pytest.fixture
async def streams() -> AsyncIterator[Streams]:
    async with AsyncExitStack() as stack:
        streams = Streams(stack)
        pages = {"/": streams.page, "/events": streams.events, "/large": streams.large}
        terms = Terms("--listen", CONNECTIONS_MAX, {"X-Of-All": "yes"}, lambda host: host == "here")
        address = await stack.enter_async_context(serving("127.0.0.1:0", pages, terms))
        streams.port = int(address.rpartition(":")[2])
        yield streams


async def test_parts_come_as_they_are_made_until_they_are_over(streams: Streams) -> None:
    client = await streams.follow()
    streams.parts[0].put_nowait(b"second\n")
    assert await client.reader.readline() == b"second\n"
    streams.parts[0].put_nowait(b"")
    assert await client.heard() == b""


async def test_what_goes_on_says_no_length(streams: Streams) -> None:
    client = await streams.connect(FOLLOW)
    head = (await client.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    assert "Content-Type: text/event-stream" in head
    assert not any(line.startswith("Content-Length") for line in head)


async def test_who_asks_for_the_head_alone_follows_nothing(streams: Streams) -> None:
    client = await streams.connect(FOLLOW.replace(b"GET", b"HEAD"))
    assert (await client.heard()).endswith(b"\r\n\r\n")
    assert streams.parts == []


async def test_one_too_many_is_refused_until_somebody_has_gone(
    streams: Streams, let_pass: Callable[[float], None]
) -> None:
    clients = [await streams.follow() for _ in range(STREAMS_MAX)]
    refused = await streams.connect(FOLLOW)
    assert b"503 Service Unavailable" in await refused.heard()
    # Pages are there for who comes meanwhile.
    assert await (await streams.connect(b"")).status(ASK) == 200
    clients[0].end()
    # It is noticed when there is something to tell: what comes first may still find room in the kernel.
    while len(streams.parts) == STREAMS_MAX:
        streams.parts[0].put_nowait(b"more\n")
        again = await streams.connect(FOLLOW)
        await again.reader.readline()
        if len(streams.parts) == STREAMS_MAX:
            await again.heard()
    streams.parts[1].put_nowait(b"still here\n")
    assert await clients[1].reader.readline() == b"still here\n"


async def test_who_takes_nothing_is_sent_away_and_no_second_part_was_made_for_it(
    streams: Streams, let_pass: Callable[[float], None]
) -> None:
    other = await streams.follow()
    slow = await streams.connect(b"")
    slow.writer.transport.pause_reading()
    slow.say(FOLLOW.replace(b"/events", b"/large"))
    while streams.large_made == 0:
        assert await (await streams.connect(b"")).status(ASK) == 200
    let_pass(1.01 * ANSWER_S)
    slow.writer.transport.resume_reading()
    assert len(await slow.heard()) < PART_BYTES
    assert streams.large_made == 1
    streams.parts[0].put_nowait(b"on\n")
    assert await other.reader.readline() == b"on\n"


async def test_who_waits_for_the_next_part_is_not_sent_away_for_it(
    streams: Streams, let_pass: Callable[[float], None]
) -> None:
    client = await streams.follow()
    let_pass(100 * ANSWER_S)
    assert await (await streams.connect(b"")).status(ASK) == 200
    streams.parts[0].put_nowait(b"late\n")
    assert await client.reader.readline() == b"late\n"


async def test_who_follows_ends_with_the_server() -> None:
    async with AsyncExitStack() as stack:
        streams = Streams(stack)
        async with serving("127.0.0.1:0", {"/events": streams.events}) as address:
            streams.port = int(address.rpartition(":")[2])
            client = await streams.follow()
        assert await asyncio.wait_for(client.heard(), SAFETY_S) == b""


@pytest.mark.parametrize(
    "hosts",
    [(b"evil.example",), (b"here.evil.example",), (), (b"here", b"evil.example"), (b"",)],
    ids=["another", "longer", "none", "two", "empty"],
)
@pytest.mark.parametrize("path", [b"/", b"/events", b"/nowhere"])
async def test_nothing_is_served_under_another_hosts_name(
    streams: Streams, hosts: tuple[bytes, ...], path: bytes
) -> None:
    lines = b"".join(b"Host: " + host + b"\r\n" for host in hosts)
    assert await (await streams.connect(b"")).status(b"GET " + path + b" HTTP/1.1\r\n" + lines + b"\r\n") == 421
    assert streams.parts == []


@pytest.mark.parametrize(
    "said", [ASK, ASK.replace(b"/ ", b"/nowhere "), ASK.replace(b"GET", b"POST"), b"x\r\n\r\n", FOLLOW]
)
async def test_each_answer_has_the_headers_of_all(streams: Streams, said: bytes) -> None:
    client = await streams.connect(said)
    assert b"\r\nX-Of-All: yes\r\n" in await client.reader.readuntil(b"\r\n\r\n")
