"""The pages over HTTP, asked over real sockets, by clients that say nothing or take nothing, too."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus

import pytest

from edgeshare.contract.errors import EdgeshareError, Forbidden, InvalidRequest, Unauthenticated, Unavailable
from edgeshare.http.answering import Page, Request, text_page
from edgeshare.http.web import ANSWER_S, CONNECTIONS_MAX, PER_ADDRESS_MAX, REQUEST_S, serving
from tests.kit.pages.site_client import ASKED, Client

MANY = CONNECTIONS_MAX + PER_ADDRESS_MAX


class Site:
    """Pages that are served: one is there at once, one when ``go_on`` is set, and one is large."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.port = 0
        self.go_on = asyncio.Event()
        self.begun = asyncio.Semaphore(0)
        """Released when the slow page, or the large one, is begun."""
        self.large_bytes = 64 << 20
        """More than the kernel keeps of what nobody reads."""

    async def well(self, _: Request) -> Page:
        return text_page(HTTPStatus.OK, "ok")

    async def slow(self, _: Request) -> Page:
        self.begun.release()
        await self.go_on.wait()
        return text_page(HTTPStatus.OK, "slow")

    async def large(self, _: Request) -> Page:
        self.begun.release()
        return Page(HTTPStatus.OK, "text/plain", bytes(self.large_bytes))

    async def connect(self, address: str = "127.0.0.1") -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        client = Client(reader, writer)
        self._stack.callback(client.end)
        return client

    async def connect_all(self, count: int, address: str = "127.0.0.1", said: bytes = b"") -> list[Client]:
        clients = [await self.connect(address) for _ in range(count)]
        for client in clients:
            client.say(said)
        return clients


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        site = Site(stack)
        pages = {"/healthz": site.well, "/slow": site.slow, "/large": site.large}
        address = await stack.enter_async_context(serving("127.0.0.1:0", pages))
        site.port = int(address.rpartition(":")[2])
        yield site


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (ASKED, 200),
        (b"HEAD /healthz?verbose HTTP/1.0\r\n\r\n", 200),
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404),
        (b"POST /healthz HTTP/1.1\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nA: " + b"a" * 9000 + b"\r\n\r\n", 431),
    ],
)
async def test_each_request_gets_the_answer_that_is_its(site: Site, said: bytes, status: int) -> None:
    assert await (await site.connect()).status(said) == status


@pytest.mark.parametrize(
    ("kind", "status"), [(InvalidRequest, 400), (Unauthenticated, 401), (Forbidden, 403), (Unavailable, 503)]
)
async def test_a_page_goes_by_its_request_and_an_error_of_it_is_told_with_its_status(
    kind: type[EdgeshareError], status: int
) -> None:
    requests: list[Request] = []

    async def refusing(request: Request) -> Page:
        requests.append(request)
        raise kind("it is so")

    async with serving("127.0.0.1:0", {"/": refusing}) as address, AsyncExitStack() as stack:
        client = Client(*await asyncio.open_connection(*address.split(":")))
        stack.callback(client.end)
        client.say(b"GET /?a=b HTTP/1.1\r\nCookie: c=d \r\nCOOKIE:e=f\r\n\r\n")
        head, _, body = (await client.heard()).decode().partition("\r\n\r\n")
    assert requests == [Request("a=b", [("cookie", "c=d"), ("cookie", "e=f")])]
    assert (head.split()[1], body) == (str(status), "it is so\n")
    assert ("WWW-Authenticate: Bearer" in head) is (status == 401)


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["nothing", "half a request"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"], ids=["own address", "another address"])
async def test_a_probe_is_answered_however_many_say_nothing(
    site: Site, let_pass: Callable[[float], None], said: bytes, address: str
) -> None:
    await site.connect_all(MANY, address, said)
    assert [await (await site.connect()).status() for _ in range(3)] == [200, 200, 200]


async def test_who_has_waited_longest_of_an_address_ends_for_a_new_one_of_it(
    site: Site, let_pass: Callable[[float], None]
) -> None:
    clients = await site.connect_all(PER_ADDRESS_MAX + 1)
    assert await clients[0].heard() == b""
    assert [await client.status() for client in clients[1:]] == [200] * PER_ADDRESS_MAX


async def test_who_has_waited_longest_ends_for_a_new_one_where_all_addresses_have_as_many(
    site: Site, let_pass: Callable[[float], None]
) -> None:
    addresses = [f"127.0.1.{number}" for number in range(1, CONNECTIONS_MAX + 2)]
    clients = [await site.connect(address) for address in addresses]
    assert await clients[0].heard() == b""
    assert [await client.status() for client in clients[1:]] == [200] * CONNECTIONS_MAX


async def test_many_of_one_address_push_out_nobody_of_another(site: Site, let_pass: Callable[[float], None]) -> None:
    first = await site.connect()
    silent = await site.connect_all(MANY, "127.0.0.2")
    # The last of those to go is gone, so that all have come.
    assert await silent[-PER_ADDRESS_MAX - 1].heard() == b""
    assert await first.status() == 200


async def test_a_request_has_a_time_to_arrive_in(site: Site, let_pass: Callable[[float], None]) -> None:
    late, silent = await site.connect_all(2, said=ASKED[:10])
    assert await (await site.connect()).status() == 200
    let_pass(0.99 * REQUEST_S)
    assert await late.status(ASKED[10:]) == 200
    let_pass(0.02 * REQUEST_S)
    assert await silent.heard() == b""
    assert REQUEST_S <= 1


async def test_who_is_being_answered_does_not_end_for_those_that_say_nothing(
    site: Site, let_pass: Callable[[float], None]
) -> None:
    clients = await site.connect_all(PER_ADDRESS_MAX)
    answers = [asyncio.create_task(client.status(b"GET /slow HTTP/1.1\r\n\r\n")) for client in clients]
    for _ in clients:
        await site.begun.acquire()
    silent = await site.connect_all(MANY)
    assert await silent[-PER_ADDRESS_MAX - 1].heard() == b""
    site.go_on.set()
    assert await asyncio.gather(*answers) == [200] * PER_ADDRESS_MAX


async def test_of_those_that_are_being_answered_the_oldest_ends_for_a_new_one(
    site: Site, let_pass: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    answers = []
    for _ in range(PER_ADDRESS_MAX + 1):
        client = await site.connect()
        answers.append(asyncio.create_task(client.status(b"GET /slow HTTP/1.1\r\n\r\n")))
        await site.begun.acquire()
    assert await answers[0] == 0
    site.go_on.set()
    assert await asyncio.gather(*answers[1:]) == [200] * PER_ADDRESS_MAX
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def paused(site: Site) -> Client:
    """One that has asked for the large page and takes nothing of it yet."""
    client = await site.connect()
    client.writer.transport.pause_reading()
    client.say(b"GET /large HTTP/1.1\r\n\r\n")
    await site.begun.acquire()
    # The server has written it as far as it could by then.
    assert await (await site.connect()).status() == 200
    return client


async def test_who_does_not_take_its_answer_is_ended_with_what_waits_for_it(
    site: Site, let_pass: Callable[[float], None]
) -> None:
    client = await paused(site)
    let_pass(1.01 * ANSWER_S)
    client.writer.transport.resume_reading()
    assert len(await client.heard()) < site.large_bytes


async def test_who_takes_an_answer_slowly_gets_all_of_it(site: Site, let_pass: Callable[[float], None]) -> None:
    client = await paused(site)
    let_pass(1.01 * ANSWER_S)
    client.writer.transport.resume_reading()
    kernels_bytes = len(await client.heard())
    # A little waits for room in the kernel.
    site.large_bytes = kernels_bytes + 30_000
    client = await paused(site)
    let_pass(0.9 * ANSWER_S)
    client.writer.transport.resume_reading()
    assert len(await client.heard()) > site.large_bytes


async def test_those_that_are_sent_away_are_said_once_for_many(
    site: Site, let_pass: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    await site.connect_all(MANY)
    assert await (await site.connect()).status() == 200
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line == (
        f"metrics_address 127.0.0.1:0: too many connections: the oldest that waits for its request to arrive is ended "
        f"for a new one from 127.0.0.1: there may be {CONNECTIONS_MAX} at a time, {PER_ADDRESS_MAX} of one address"
    )
