"""The server, asked by a client of its own, with verbs of the test's."""

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.log_limit import SAID_EVERY_NS
from sharemgr.cluster.server.serving import BODY_BYTES_MAX, Server
from tests.kit.assigner.connection import Connection

SAFETY_S = 60


class Verbs:
    """filter answers with what it got, prioritize refuses it, preempt fails, bind waits until it may go on."""

    def __init__(self) -> None:
        self.by_name = {"filter": self.echo, "prioritize": self.refuse, "preempt": self.fail, "bind": self.wait}
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.calls = 0
        self.answers: Counter[tuple[str, int]] = Counter()

    async def echo(self, body: bytes) -> object:
        self.calls += 1
        return json.loads(body)

    async def refuse(self, body: bytes) -> object:
        raise InvalidRequest(f"{body.decode()} is no message")

    async def fail(self, body: bytes) -> object:
        raise KeyError(body.decode())

    async def wait(self, body: bytes) -> object:
        self.began.set()
        await self.go_on.wait()
        return {"Error": ""}

    def answered(self, verb: str, status: int) -> None:
        self.answers[verb, status] += 1


@asynccontextmanager
async def served(verbs: Verbs) -> AsyncIterator[str]:
    server = Server("127.0.0.1:0", (), lambda: verbs.by_name, verbs.answered, lambda kind: None)
    async with server.running(None) as url:
        yield url


@pytest.fixture
async def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
async def url(verbs: Verbs) -> AsyncIterator[str]:
    async with served(verbs) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Connection]:
    with Connection(url) as client:
        yield client


async def test_what_a_verb_returns_is_sent_as_json(client: Connection) -> None:
    status, text = await client.ask("/filter", b'{"a": ["\xc3\xa9", 1]}')
    assert status == 200
    assert json.loads(text) == {"a": ["é", 1]}


async def test_a_connection_is_kept_whatever_is_answered(url: str, verbs: Verbs, client: Connection) -> None:
    ports = set()
    for verb in ("filter", "prioritize", "preempt", "filter"):
        await client.ask(f"/{verb}", b"1")
        ports.add(client.port)
    assert len(ports) == 1
    assert verbs.answers == {("filter", 200): 2, ("prioritize", 400): 1, ("preempt", 500): 1}


async def test_a_refusal_is_told_with_its_reason(url: str, client: Connection) -> None:
    assert await client.ask("/prioritize", b"x") == (400, "x is no message\n")


async def test_who_asks_in_vain_again_and_again_is_told_each_time_and_the_log_now_and_then(
    verbs: Verbs, caplog: pytest.LogCaptureFixture
) -> None:
    now_ns = 0
    server = Server("127.0.0.1:0", (), lambda: verbs.by_name, verbs.answered, lambda kind: None, lambda: now_ns)
    async with server.running(None) as url:
        with Connection(url) as client:
            for verb, status in (("prioritize", 400), ("preempt", 500)) * 3:
                assert (await client.ask(f"/{verb}", b"x"))[0] == status
            now_ns = SAID_EVERY_NS
            await client.ask("/prioritize", b"y")
    assert caplog.messages == [
        "prioritize refused: x is no message",
        "preempt failed",
        "prioritize refused: y is no message (2 more since the last such line)",
    ]


async def test_an_unexpected_error_is_logged_and_the_next_request_answered(
    url: str, client: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    assert await client.ask("/preempt", b"x") == (500, "preempt failed: the assigner's log says why\n")
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)
    assert await client.ask("/filter", b"1") == (200, "1")


async def test_while_no_verb_is_answered_the_reason_is_told_and_the_connection_not_kept(verbs: Verbs) -> None:
    def answering() -> dict[str, object]:
        raise Unavailable("this replica does not lead")

    server = Server("127.0.0.1:0", (), answering, verbs.answered, lambda kind: None)  # type: ignore[arg-type]
    async with server.running(None) as url:
        with Connection(url) as client:
            assert await client.ask("/filter", b"1") == (503, "this replica does not lead\n")
            assert not client.is_open


@pytest.mark.parametrize("path", ["/", "/status", "/filter/x", "/filters", "//filter"])
async def test_there_is_nothing_but_the_verbs(url: str, verbs: Verbs, client: Connection, path: str) -> None:
    assert (await client.ask(path, b"1"))[0] == 404
    assert not verbs.calls


async def test_verbs_are_posted(url: str, client: Connection) -> None:
    assert (await client.ask("/filter", b"", "GET"))[0] == 405


async def test_a_body_has_a_limit(url: str, verbs: Verbs, client: Connection) -> None:
    most = b'"' + b"x" * (BODY_BYTES_MAX - 2) + b'"'
    assert (await client.ask("/filter", most))[0] == 200
    status, why = await client.ask("/filter", most + b" ")
    assert (status, why) == (413, f"a request has at most {BODY_BYTES_MAX} bytes\n")
    assert verbs.calls == 1


async def test_a_request_that_breaks_off_reaches_no_verb_and_harms_nobody(
    url: str, verbs: Verbs, client: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    host, _, port = url.removeprefix("http://").rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n1")
    await writer.drain()
    # The server has begun to read it: it answers another meanwhile.
    assert await client.ask("/filter", b"1") == (200, "1")
    writer.transport.abort()
    assert await client.ask("/filter", b"1") == (200, "1")
    assert verbs.calls == 2
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_what_is_being_answered_at_the_end_is_answered(verbs: Verbs) -> None:
    server = Server("127.0.0.1:0", (), lambda: verbs.by_name, verbs.answered, lambda kind: None)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server.running(None))
        with Connection(url) as client, Connection(url) as other:
            asked = asyncio.create_task(client.ask("/bind", b"1"))
            await verbs.began.wait()
            assert await other.ask("/filter", b"1") == (200, "1")
            ending = asyncio.create_task(stack.pop_all().aclose())
            await asyncio.wait_for(until_sent_away(other), SAFETY_S)
            verbs.go_on.set()
            assert await asked == (200, '{"Error":""}')
        await ending


async def until_sent_away(client: Connection) -> None:
    """As is who has nothing to be answered when the server ends, or with his last answer."""
    with suppress(ConnectionError):
        while client.is_open:
            await client.ask("/filter", b"1")


async def test_an_address_in_use_is_said(verbs: Verbs) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        server = Server(address, (), lambda: verbs.by_name, verbs.answered, lambda kind: None)
        with pytest.raises(Unavailable, match=f"address {address}: cannot be listened on: Address already in use"):
            async with server.running(None):
                pass


async def test_every_address_of_the_machine_is_served_where_none_is_named(verbs: Verbs) -> None:
    server = Server(":0", (), lambda: verbs.by_name, verbs.answered, lambda kind: None)
    hosts = ["127.0.0.1", "[::1]"] if socket.has_dualstack_ipv6() else ["127.0.0.1"]
    async with server.running(None) as url:
        for host in hosts:
            with Connection(f"http://{host}:{url.rpartition(':')[2]}") as client:
                assert await client.ask("/filter", b"1") == (200, "1")
