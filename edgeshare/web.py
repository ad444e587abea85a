"""A few pages for Prometheus and probes over HTTP: GET alone, one answer a connection, and bounds on everything."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from edgeshare.errors import Unavailable

logger = logging.getLogger(__name__)

CONNECTIONS_MAX = 16
"""At a time: a scrape and the probes; who comes beyond is sent away."""

HEADER_BYTES_MAX = 8192
REQUEST_S = 5.0
"""How long a request may take to arrive, and its answer to be taken."""


@dataclass(frozen=True)
class Page:
    """An answer."""

    status: HTTPStatus
    content_type: str
    body: bytes


def text_page(status: HTTPStatus, text: str) -> Page:
    """An answer in a line."""
    return Page(status, "text/plain; charset=utf-8", f"{text}\n".encode())


Pages = Mapping[str, Callable[[], Awaitable[Page]]]
"""What makes the page of each path."""


@asynccontextmanager
async def serving(address: str, pages: Pages) -> AsyncIterator[str]:
    """Serves the pages at ``host:port`` (port 0: any that is free); yields the address that it is then. Raises
    Unavailable where it cannot."""
    host, _, port = address.rpartition(":")
    web = _Web(pages)
    try:
        server = await asyncio.start_server(web.answer, host.strip("[]") or None, int(port), limit=HEADER_BYTES_MAX)
    except OSError as error:
        raise Unavailable(
            f"metrics_address {address}: cannot be listened on: {error.strerror or error}; choose another, or none"
        ) from error
    bound = server.sockets[0].getsockname()
    async with server:
        yield f"{host}:{bound[1]}"


class _Web:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._connections = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= CONNECTIONS_MAX:
                async with asyncio.timeout(REQUEST_S):
                    page, with_body = await self._page(reader)
                    _write(writer, page, with_body)
                    await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError):
            # The other side's doing; it has only lost its own connection.
            pass
        finally:
            self._connections -= 1
            writer.close()

    async def _page(self, reader: asyncio.StreamReader) -> tuple[Page, bool]:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return text_page(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long"), True
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return text_page(HTTPStatus.BAD_REQUEST, "this is not HTTP/1"), True
        method, target, _ = words
        if method not in ("GET", "HEAD"):
            return text_page(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered here"), True
        make = self._pages.get(target.partition("?")[0])
        if make is None:
            return text_page(HTTPStatus.NOT_FOUND, f"there are: {', '.join(self._pages)}"), method == "GET"
        try:
            return await make(), method == "GET"
        except Unavailable as error:
            return text_page(HTTPStatus.SERVICE_UNAVAILABLE, str(error)), method == "GET"


def _write(writer: asyncio.StreamWriter, page: Page, with_body: bool) -> None:
    lines = (
        f"HTTP/1.1 {page.status.value} {page.status.phrase}",
        f"Content-Type: {page.content_type}",
        f"Content-Length: {len(page.body)}",
        "Connection: close",
    )
    writer.write("".join(f"{line}\r\n" for line in lines).encode() + b"\r\n")
    if with_body:
        writer.write(page.body)
