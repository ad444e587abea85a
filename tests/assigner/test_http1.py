"""HTTP/1.1, spoken by a client that can also misbehave."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.server import serving
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.http1 import BESIDE_BODY_BYTES_MAX, WAITING_MAX
from sharemgr.cluster.server.serving import BODY_BYTES_MAX, Server

SAFETY_S = 60
READ_BYTES_MAX = 256 * 1024
"""What asyncio reads at a time."""


class Client:
    """One connection, which sends what the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        assert isinstance(writer.transport, asyncio.Transport)
        self.transport = writer.transport

    def send(self, path: str, body: bytes = b"1", *headers: str, method: str = "POST") -> None:
        lines = [f"{method} {path} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def answer(self, has_body: bool = True) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of the next."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), SAFETY_S)).decode()
        first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", "0")) if has_body else 0
        return int(first.split()[1]), headers, (await self.reader.readexactly(length)).decode()

    async def ask(self, path: str, body: bytes = b"1") -> tuple[int, str]:
        self.send(path, body)
        status, _, text = await self.answer()
        return status, text

    async def ends(self) -> bytes:
        """What comes before the server's end."""
        return await asyncio.wait_for(self.reader.read(), SAFETY_S)


class Running:
    """The server: filter answers with what it got, and bind waits until it may go on."""

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.ended: Counter[Ending] = Counter()
        self.verbs = {"filter": self.echo, "bind": self.wait}
        self.server = Server(
            "127.0.0.1:0", (), lambda: self.verbs, lambda *_: None, lambda kind: self.ended.update([kind])
        )
        self.port = 0
        self.waited = 0

    async def echo(self, body: bytes) -> object:
        return json.loads(body)

    async def wait(self, body: bytes) -> object:
        self.began.set()
        await self.go_on.wait()
        self.waited += 1
        return body.decode()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a client does is no error."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    running = Running()
    async with running.server.running(None) as url:
        running.port = int(url.rpartition(":")[2])
        yield running


async def test_what_comes_in_any_pieces_is_answered(running: Running) -> None:
    request = b"POST /filter HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"
    async with running.client() as client:
        for size in (1, 7, len(request)):
            for start in range(0, len(request), size):
                client.writer.write(request[start : start + size])
                await asyncio.sleep(0)
            assert (await client.answer())[::2] == (200, "[1]")


async def test_requests_that_come_together_are_answered_in_turn(running: Running) -> None:
    async with running.client() as client:
        client.send("/bind")
        for number in range(1, WAITING_MAX):
            client.send("/filter", str(number).encode())
        await running.began.wait()
        running.go_on.set()
        assert [(await client.answer())[2] for _ in range(WAITING_MAX)] == ['"1"', *map(str, range(1, WAITING_MAX))]


async def test_who_does_not_wait_for_answers_is_ended_and_nothing_of_it_is_kept(running: Running) -> None:
    async with running.client() as client, running.client() as other:
        client.send("/bind")
        await running.began.wait()
        for _ in range(WAITING_MAX + 1):
            client.send("/filter")
        assert await client.ends() == b""
        running.go_on.set()
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    assert not running.server.bodies.bytes


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "no HTTP/1.1", id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "no HTTP/1.1", id="HTTP/2"),
        pytest.param(b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "no HTTP/1.1", id="a length below 0"),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n",
            "no HTTP/1.1",
            id="two lengths",
        ),
        pytest.param(
            b"POST /bind HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n1",
            "another protocol is asked for",
            id="an upgrade",
        ),
    ],
)
async def test_what_is_no_http1_is_refused_and_ends_its_connection(running: Running, said: bytes, why: str) -> None:
    async with running.client() as client, running.client() as other:
        client.writer.write(said)
        status, headers, text = await client.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert why in text
        assert await client.ends() == b""
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    assert not running.began.is_set()


HEAD = b"POST /filter HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SIZE = READ_BYTES_MAX + BESIDE_BODY_BYTES_MAX


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"POST /" + b"x" * SIZE, id="a path"),
        pytest.param(HEAD + b"X: " + b"x" * SIZE, id="a header"),
        pytest.param(HEAD + b"X: x\r\n" * (SIZE // 6), id="headers"),
        pytest.param(CHUNKED + b"1\r\n1\r\n" * (SIZE // 6), id="crumbs of a body"),
        pytest.param(CHUNKED + b"1;" + b"x" * SIZE, id="what is said of a body's piece"),
        pytest.param(CHUNKED + b"0\r\nX: " + b"x" * SIZE, id="what follows a body"),
    ],
)
async def test_what_is_beside_a_body_is_bounded(
    running: Running, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running.client() as client, running.client() as other:
        client.writer.write(said)
        with suppress(ConnectionError):
            # It is told why, unless it was still sending at the end.
            await client.ends()
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    (message,) = caplog.messages
    assert f"more than {BESIDE_BODY_BYTES_MAX} bytes beside its body" in message
    assert not running.server.bodies.bytes


async def test_a_body_that_is_too_long_is_told_so_while_it_comes_and_not_read_without_end(running: Running) -> None:
    async with running.client() as client:
        client.writer.write(b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        client.writer.write(piece * (BODY_BYTES_MAX // 65536 + 1))
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (413, "close")
        assert not running.server.bodies.bytes
        with suppress(ConnectionError):
            while True:
                client.writer.write(piece)
                await client.writer.drain()
    assert running.ended == {Ending.PROTOCOL: 1}


async def test_a_client_that_asks_whether_to_send_its_body_is_told_to(running: Running) -> None:
    async with running.client() as client:
        client.writer.write(b"POST /filter HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.answer())[0] == 100
        client.writer.write(b"1")
        assert (await client.answer())[::2] == (200, "1")


async def test_who_asks_for_the_head_alone_gets_no_body(running: Running) -> None:
    async with running.client() as client:
        client.send("/filter", b"", method="HEAD")
        assert (await client.answer(has_body=False))[0] == 405
        assert await client.ask("/filter") == (200, "1")


@pytest.mark.parametrize(("version", "header"), [("1.0", "X: x"), ("1.1", "Connection: close")])
async def test_a_client_that_wants_one_answer_gets_the_end_with_it(running: Running, version: str, header: str) -> None:
    async with running.client() as client:
        client.writer.write(f"POST /filter HTTP/{version}\r\n{header}\r\nContent-Length: 1\r\n\r\n1".encode())
        status, headers, text = await client.answer()
        assert (status, headers["connection"], text) == (200, "close", "1")
        assert await client.ends() == b""


async def test_after_certificates_changed_each_connection_has_one_more_answer(running: Running) -> None:
    async with running.client() as client, running.client() as busy:
        assert await client.ask("/filter") == (200, "1")
        busy.send("/bind")
        await running.began.wait()
        await running.server.use(None)
        running.go_on.set()
        for each in (client, busy):
            if each is client:
                each.send("/filter")
            status, headers, _ = await each.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert await each.ends() == b""


async def test_who_leads_no_more_answers_what_came_first_and_sends_its_client_away(running: Running) -> None:
    async def refuse(body: bytes) -> object:
        raise Unavailable("another replica leads")

    async with running.client() as client:
        running.verbs["filter"] = refuse
        for path in ("/bind", "/filter", "/bind"):
            client.send(path)
        running.go_on.set()
        assert [(await client.answer())[0] for _ in range(2)] == [200, 503]
        assert await client.ends() == b""
    assert running.waited == 1


async def test_a_request_whose_client_has_left_goes_on_to_its_end(running: Running) -> None:
    async with running.client() as client:
        client.send("/bind")
        client.send("/filter")
        await running.began.wait()
    async with running.client() as other:
        assert await other.ask("/filter") == (200, "1")
        running.go_on.set()
        assert await other.ask("/filter") == (200, "1")
    assert running.waited == 1
    assert not running.server.bodies.bytes


async def test_a_client_that_says_nothing_is_sent_away_and_not_while_it_waits(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a client to have said something, also where the machine does something else for a moment.
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    async with running.client() as mute, running.client() as slow, running.client() as waiting:
        waiting.send("/bind")
        slow.writer.write(HEAD)
        assert await mute.ends() == b""
        assert await slow.ends() == b""
        running.go_on.set()
        assert (await waiting.answer())[::2] == (200, '"1"')
        assert await waiting.ends() == b""


async def test_a_client_that_does_not_read_is_not_read_from(running: Running) -> None:
    text = json.dumps("x" * 100_000)
    async with running.client() as client:
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._http1
        client.transport.pause_reading()
        asked = 0
        while connection._transport.is_reading():
            assert asked < 400, "it is read from without end"
            if not client.writer.transport.get_write_buffer_size():
                client.send("/filter", text.encode())
                asked += 1
            await asyncio.sleep(0)
        async with running.client() as other:
            assert await other.ask("/filter") == (200, "1")
        client.transport.resume_reading()
        for _ in range(asked):
            assert (await client.answer())[::2] == (200, text)


async def test_one_that_does_not_read_and_says_nothing_is_sent_away(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    async with running.client() as client:
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._http1
        client.transport.pause_reading()
        for _ in range(WAITING_MAX - 1):
            client.send("/filter", json.dumps("x" * 1_000_000).encode())
        await asyncio.wait_for(connection.over.wait(), SAFETY_S)
    assert not running.server.bodies.bytes


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(
            [HEAD, CHUNKED, b"\r\n", b"1\r\n1\r\n", b"0\r\n\r\n", b"Content-Length: 3\r\n", b"Connection: "]
        )
        | st.binary(max_size=20),
        max_size=20,
    )
)
async def test_whatever_a_client_sends_another_is_answered(running: Running, parts: list[bytes]) -> None:
    async with running.client() as client, running.client() as other:
        for part in parts:
            client.writer.write(part)
            await asyncio.sleep(0)
        assert await other.ask("/filter") == (200, "1")


async def test_what_is_asked_at_the_end_is_answered_and_who_is_idle_is_sent_away() -> None:
    running = Running()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(running.server.running(None))
        running.port = int(url.rpartition(":")[2])
        async with running.client() as client, running.client() as idle:
            assert await idle.ask("/filter") == (200, "1")
            client.send("/bind")
            await running.began.wait()
            ending = asyncio.create_task(stack.pop_all().aclose())
            assert await idle.ends() == b""
            running.go_on.set()
            assert (await client.answer())[::2] == (200, '"1"')
            assert await client.ends() == b""
        await ending
