"""Connections to an API server, kept from one request to the next: over each one thing at a time is asked, in HTTP/1.1.
What is asked is sent once: whoever wants another try makes it."""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.answer import Answer

CONNECTIONS_MAX = 100
"""At a time, with those of the watches. What is asked beyond that waits."""

KEPT_S = 15.0
"""A connection that is not used is kept for so long: kube-apiserver ends one after 90 s, and what is asked just then
would be lost."""

OTHER_ADDRESS_S = 0.25
"""After so long the next address of a name is tried, too (RFC 8305)."""

BUFFER_BYTES = 128 * 1024
"""Are read at a time: at most so many were not looked at yet when an answer is found to be too long."""

URL = re.compile(r"[!-~]+")
"""The end of a line in it would begin a header."""


class Connections:
    """The connections to one server."""

    def __init__(self, url: str, context: ssl.SSLContext | None, server_name: str | None) -> None:
        """``context`` is for a URL of https, and ``server_name`` whose certificate is expected there; None: that of
        the URL's host. Raises Unavailable where the URL is none."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise Unavailable(f"the API server's URL {url!r} is none: {error}") from error
        if parts.scheme not in ("http", "https") or not host or not URL.fullmatch(url):
            raise Unavailable(f"the API server's URL {url!r} is none: expected https://HOST:PORT")
        is_secure = parts.scheme == "https"
        self._host, self._port = host, port or (443 if is_secure else 80)
        self._context = context if is_secure else None
        self._server_name = (server_name or host) if is_secure else None
        self._path = parts.path
        self._fields = f" HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\nUser-Agent: edgeshare\r\n"
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self._all: set[_Connection] = set()
        self._idle: deque[tuple[float, _Connection]] = deque()
        """Since when; the longest first."""

    async def ask(self, method: str, target: str, fields: dict[str, str], body: bytes | None) -> Answer:
        """An answer that has begun; it is read whole, or closed. Raises OSError where none comes."""
        await self._room.acquire()
        try:
            connection = self._kept() or await self._opened()
        except BaseException:
            self._room.release()
            raise
        length = f"Content-Length: {len(body)}\r\n" if body is not None else ""
        more = "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
        head = f"{method} {self._path}{target}{self._fields}{more}{length}\r\n".encode()
        answer = connection.ask(head + body if body else head, partial(self._done, connection))
        try:
            await answer.begins()
        except BaseException:
            answer.close()
            raise
        return answer

    async def close(self) -> None:
        """Ends all of them."""
        for connection in list(self._all):
            connection.end()

    def _kept(self) -> "_Connection | None":
        now_s = asyncio.get_running_loop().time()
        while self._idle and self._idle[0][0] + KEPT_S < now_s:
            self._idle.popleft()[1].end()
        while self._idle:
            _, connection = self._idle.pop()
            if not connection.is_over:
                return connection
        return None

    async def _opened(self) -> "_Connection":
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._buffer, self._all),
            self._host,
            self._port,
            happy_eyeballs_delay=OTHER_ADDRESS_S,
            ssl=self._context,
            server_hostname=self._server_name,
        )
        return connection

    def _done(self, connection: "_Connection", is_kept: bool) -> None:
        self._room.release()
        connection.answer = None
        if is_kept and not connection.is_over:
            self._idle.append((asyncio.get_running_loop().time(), connection))
        else:
            connection.end()


class _Connection(asyncio.BufferedProtocol):
    def __init__(self, buffer: memoryview, all_of_them: "set[_Connection]") -> None:
        """``buffer`` is everybody's: what was read into it is looked at at once."""
        self.answer: Answer | None = None
        """What is being read; None: nothing is."""
        self.is_over = False
        """Nothing can be asked over it any more."""
        self._buffer = buffer
        self._all = all_of_them

    def ask(self, request: bytes, done: Callable[[bool], None]) -> Answer:
        """Sends it. For ``done`` see Answer."""
        self.answer = Answer(self.transport, done)
        self.transport.write(request)
        return self.answer

    def end(self) -> None:
        """Ends the connection at once."""
        self.is_over = True
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol, as all that follows."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._all.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.answer is None:
            # Nothing was asked: it would be taken for the answer to what will be.
            self.end()
        else:
            self.answer.take_in(self._buffer[:nbytes])

    def eof_received(self) -> None:
        self.is_over = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self._all.discard(self)
        if self.answer is not None:
            lost = ConnectionResetError("the connection has ended before the answer has")
            self.answer.break_off(exc if isinstance(exc, OSError) else lost)
