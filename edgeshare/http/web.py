"""A few pages over HTTP, for Prometheus, for probes and for people: GET alone, one answer a connection, and bounds on
everything. An answer may be a stream that goes on."""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic_ns
from typing import Any

from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import Unavailable
from edgeshare.http.answering import STATUSES, Page, Pages, Request, Stream, error_page, text_page
from edgeshare.http.connection_limit import ConnectionLimit
from edgeshare.log_limit import LogLimit

logger = logging.getLogger(__name__)

Task = asyncio.Task[None]
"""What answers one connection."""

CONNECTIONS_MAX = 16
"""At a time whose request has not arrived whole, and as many that are being answered: a scrape and the probes, and some
more."""

PER_ADDRESS_MAX = 4
"""Of each of the two: the kubelet's probes come from one address, up to three at a time. So it takes four addresses to
have all."""

HEADER_BYTES_MAX = 8192

REQUEST_S = 1.0
"""How long a request may take to arrive: a probe gives up after a second (Kubernetes' default), and sends its request
with the connection's first packets."""

ANSWER_S = 5.0
"""How long an answer may take to be made and taken, and of a stream each part to be taken."""

STREAMS_MAX = 16
"""At a time; one more is refused, as whoever follows one comes back when it is ended."""

NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""For one more connection."""


@dataclass(frozen=True)
class Terms:
    """The terms on which pages are served."""

    setting: str = "metrics_address"
    """Where the address is from, as messages name it."""
    per_address_max: int = PER_ADDRESS_MAX
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of each answer, beside what it has anyway."""
    is_own_host: Callable[[str], bool] = lambda host: True
    """Whether a request may name this host, with or without a port, in its Host header; others are refused."""


@asynccontextmanager
async def serving(address: str, pages: Pages, terms: Terms = Terms()) -> AsyncIterator[str]:
    """Serves the pages at ``host:port`` (port 0: any that is free); yields the address that it is then. Raises
    Unavailable where it cannot."""
    host, port = parse_address(address)
    web = Web(address, pages, terms)
    try:
        server = await asyncio.start_server(web.answer, host or None, port, limit=HEADER_BYTES_MAX)
    except OSError as error:
        raise Unavailable(
            f"{terms.setting} {address}: cannot be listened on: {error.strerror or error}; choose another, or none"
        ) from error
    bound = server.sockets[0].getsockname()
    asyncio.get_running_loop().set_exception_handler(web.failed)
    async with server:
        try:
            yield join_address(host, bound[1])
        finally:
            # A server's end waits for its connections, from Python 3.12 on.
            web.end_streams()


class Web:
    """What speaks over the connections to one address, whoever has accepted them."""

    def __init__(self, address: str, pages: Pages, terms: Terms) -> None:
        """``address`` is for the log."""
        self._where = f"{terms.setting} {address}"
        self._pages = pages
        self._terms = terms
        self._asking: ConnectionLimit[Task] = ConnectionLimit(CONNECTIONS_MAX, terms.per_address_max)
        """Those whose request has not arrived whole."""
        self._answered: ConnectionLimit[Task] = ConnectionLimit(CONNECTIONS_MAX, terms.per_address_max)
        """Those whose request has, until its answer is taken."""
        self._streaming: set[Task] = set()
        self._log = LogLimit()
        self._no_room_log = LogLimit()

    def failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handles what the loop can tell nobody else. asyncio (Python 3.11) tells a hundred times a second, each time
        with a traceback, that a connection finds no room."""
        error = context.get("exception")
        if "socket" not in context or not isinstance(error, OSError) or error.errno not in NO_ROOM:
            loop.default_exception_handler(context)
            return
        more = self._no_room_log.ending(monotonic_ns())
        if more is not None:
            logger.error("%s: no connection can be accepted for a moment: %s%s", self._where, error.strerror, more)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection, and returns at its end."""
        # Whatever of an answer has not been taken counts as untaken, so that it is waited for here and not behind us.
        # Over TLS (asyncio, Python 3.11) a limit of 0 is reached by nothing at all.
        writer.transport.set_write_buffer_limits(high=1 if _is_tls(writer) else 0)
        address = str(writer.get_extra_info("peername")[0])
        try:
            with self._held(self._asking, address, "waits for its request to arrive"):
                async with asyncio.timeout(REQUEST_S):
                    head = await _head(reader)
            with self._held(self._answered, address, "is being answered"):
                async with asyncio.timeout(ANSWER_S):
                    answer, with_body = await self._page(head)
                    if isinstance(answer, Page):
                        self._write(writer, answer, with_body)
                        await writer.drain()
            if isinstance(answer, Stream):
                await self._stream(writer, answer, with_body)
            await _sent(writer)
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            # The other side's doing; it has only lost its own connection.
            pass
        except asyncio.CancelledError:
            # It has ended for a newer one. The task is over with it either way, and asyncio's streams (Python 3.11) log
            # one that ends cancelled as an error.
            pass
        finally:
            # Nothing is kept for who is sent away; who is not has taken all of its answer.
            writer.transport.abort()

    @contextmanager
    def _held(self, limit: ConnectionLimit[Task], address: str, state: str) -> Iterator[None]:
        """Counts the connection that this task answers to those of a state, one of which may have to end for it."""
        task = asyncio.current_task()
        assert task is not None
        evicted = limit.admit(task, address)
        if evicted is not None:
            evicted.cancel()
            more = self._log.ending(monotonic_ns())
            if more is not None:
                bounds = f"{CONNECTIONS_MAX} at a time, {self._terms.per_address_max} of one address"
                text = f"the oldest that {state} is ended for a new one from {address}: there may be {bounds}"
                logger.warning("%s: too many connections: %s%s", self._where, text, more)
        try:
            yield
        finally:
            limit.remove(task)

    async def _page(self, head: bytes | None) -> tuple[Page | Stream, bool]:
        if head is None:
            return text_page(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long"), True
        first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        words = first.split(" ")
        headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        refusal = self._refusal(words, headers)
        if refusal is not None:
            return refusal, True
        method, target, _ = words
        path, _, query = target.partition("?")
        make = self._pages.get(path)
        if make is None:
            return text_page(HTTPStatus.NOT_FOUND, f"there are: {', '.join(self._pages)}"), method == "GET"
        try:
            return await make(Request(query, headers)), method == "GET"
        except tuple(STATUSES) as error:
            return error_page(error), method == "GET"

    def _refusal(self, words: Sequence[str], headers: Sequence[tuple[str, str]]) -> Page | None:
        """What is answered to a request that no page is for; ``words`` are of its first line."""
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return text_page(HTTPStatus.BAD_REQUEST, "this is not HTTP/1")
        if words[0] not in ("GET", "HEAD"):
            return text_page(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here")
        hosts = [value for name, value in headers if name == "host"]
        if not all(map(self._terms.is_own_host, hosts or [""])):
            return text_page(HTTPStatus.MISDIRECTED_REQUEST, "nothing is served under this host's name")
        return None

    async def _stream(self, writer: asyncio.StreamWriter, stream: Stream, with_body: bool) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._streaming) >= STREAMS_MAX:
            self._write(writer, text_page(HTTPStatus.SERVICE_UNAVAILABLE, f"{STREAMS_MAX} follow already"), with_body)
            await _taken(writer)
            return
        self._streaming.add(task)
        try:
            self._write_lines(writer, HTTPStatus.OK, {"Content-Type": stream.content_type})
            await _taken(writer)
            if with_body:
                async with aclosing(stream.parts) as parts:
                    async for part in parts:
                        writer.write(part)
                        await _taken(writer)
        finally:
            self._streaming.remove(task)

    def end_streams(self) -> None:
        """Sends away who follows."""
        for task in self._streaming:
            task.cancel()

    def _write(self, writer: asyncio.StreamWriter, page: Page, with_body: bool) -> None:
        headers = {"Content-Type": page.content_type, "Content-Length": str(len(page.body)), **page.headers}
        self._write_lines(writer, page.status, headers)
        if with_body:
            writer.write(page.body)

    def _write_lines(self, writer: asyncio.StreamWriter, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        all_headers = {**headers, **self._terms.headers, "Connection": "close"}
        lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {of}" for name, of in all_headers.items())]
        writer.write("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")


def _is_tls(writer: asyncio.StreamWriter) -> bool:
    return writer.get_extra_info("ssl_object") is not None


async def _sent(writer: asyncio.StreamWriter) -> None:
    """Over TLS, closes in order: what was taken may wait in a buffer below that of which ``drain`` knows. Raises
    TimeoutError."""
    if _is_tls(writer):
        async with asyncio.timeout(ANSWER_S):
            writer.close()
            await writer.wait_closed()


async def _taken(writer: asyncio.StreamWriter) -> None:
    """Waits until the other side, or its kernel, has all that was written. Raises TimeoutError."""
    async with asyncio.timeout(ANSWER_S):
        await writer.drain()


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    """A request's first lines; None: they are too long."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return None
