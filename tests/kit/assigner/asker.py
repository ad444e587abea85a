"""A client that speaks HTTP/1.1 as a test says, and the server that it speaks to."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.serving import Server

SAFETY_S = 60


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

    def echo(self, body: bytes) -> object:
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
