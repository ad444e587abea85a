"""A stand-in for kube-scheduler, as its extender sees it: HTTP/1.1 over as many connections as it asks things at a
time, of which two are kept when they are idle."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from httptools import HttpResponseParser

from edgeshare.contract.errors import Unavailable

ASK_AGAIN_S = 0.05

IDLE_MAX = 2
"""DefaultMaxIdleConnsPerHost of Go's net/http; kube-scheduler sets no other."""


class Connection(asyncio.Protocol):
    """One, over which one thing at a time is asked."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._parser = HttpResponseParser(self)

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The answer's status and body. Raises Unavailable where the connection ends before that."""
        self._body = b""
        self._answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        """See httptools."""
        self._body += part

    def on_message_complete(self) -> None:
        """See httptools."""
        self._answer.set_result((self._parser.get_status_code(), self._body))

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if not self._answer.done():
            self._answer.set_exception(Unavailable("the assigner has ended the connection"))

    def close(self) -> None:
        """Ends it."""
        self._transport.close()


class Scheduler:
    """All its connections."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = str(parts.hostname), int(parts.port or 0)
        self._idle: list[Connection] = []

    async def ask(self, verb: str, message: object) -> Any:
        """What is answered. Raises Unavailable where that is another status than 200."""
        body = json.dumps(message, separators=(",", ":")).encode()
        head = (
            f"POST /{verb} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nUser-Agent: Go-http-client/1.1\r\n"
            f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
        )
        connection = self._idle.pop() if self._idle else await self._open()
        status, answer = await connection.ask(head.encode() + body)
        if status != 200 or len(self._idle) == IDLE_MAX:
            connection.close()
        else:
            self._idle.append(connection)
        if status != 200:
            raise Unavailable(f"the assigner answered {status}: {answer.decode()}")
        return json.loads(answer)

    def close(self) -> None:
        """Ends all that are idle."""
        for connection in self._idle:
            connection.close()

    async def _open(self) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, self._host, self._port)
        return connection


@asynccontextmanager
async def scheduling(url: str) -> AsyncIterator[Scheduler]:
    """One that may ask, when the assigner answers: it does when it has read all that is there."""
    scheduler = Scheduler(url)
    try:
        while True:
            try:
                await scheduler.ask("filter", {"Pod": {"metadata": {"name": "first", "uid": "first"}}, "NodeNames": []})
                break
            except Unavailable:
                await asyncio.sleep(ASK_AGAIN_S)
        yield scheduler
    finally:
        scheduler.close()
