"""A server on a real socket that answers as a test has it, in place of an API server, and what it says."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

SAFETY_S = 30
PODS = "/api/v1/pods"
BOUND = "spec.nodeName!="
LARGEST = 1_500_000
"""Bytes of an object that etcd keeps."""

Json = dict[str, Any]


def answer(body: Json | bytes, status: int = 200, head: str = "") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status} Said\r\n{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def chunks(*parts: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def watch(*changes: Json) -> bytes:
    """One that goes on."""
    return chunks(*(json.dumps(each).encode() + b"\n" for each in changes))


END = b"0\r\n\r\n"
"""Of the chunks."""

HANG_UP = b"\0hang up"
"""After an answer, or instead of one: the connection is ended."""


def thing(name: str, version: str) -> Json:
    return {"metadata": {"name": name, "resourceVersion": version}}


def change(name: str, version: str, kind: str = "MODIFIED") -> Json:
    return {"type": kind, "object": thing(name, version)}


def page(*names: str, version: str = "", following: str = "") -> bytes:
    metadata = {"resourceVersion": version, "continue": following}
    return answer({"metadata": metadata, "items": [thing(name, "1") for name in names]})


def name_of(found: Json) -> str:
    return str(found["metadata"]["name"])


TOO_OLD = answer({"kind": "Status", "code": 410, "message": "too old"}, 410)


TOO_SOON = answer({"kind": "Status", "message": "slow down"}, 429)

EXPIRED = watch({"type": "ERROR", "object": {"code": 410, "message": "too old"}})


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    authorization: str
    body: bytes


class Server:
    """Gives the answers that it has, one a request, and then none."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.asked: list[Asked] = []
        self.silent = asyncio.Event()
        """A request waits for an answer that there is not."""
        self.connections: set[asyncio.Task[None]] = set()
        self.url = ""

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None = None) -> AsyncIterator["Server"]:
        self.listening = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.listening.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            self.stop()
            for each in self.connections:
                each.cancel()
            await self.left()

    def stop(self) -> None:
        """Listens no more."""
        self.listening.close()

    async def left(self) -> None:
        """Each connection is at its end."""
        async with asyncio.timeout(SAFETY_S):
            while self.connections:
                await asyncio.wait(self.connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.connections.add(task)
        # One that is cancelled before it has begun closes nothing itself.
        task.add_done_callback(lambda _: writer.close())
        task.add_done_callback(self.connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target = head.split(" ")[:2]
                path, _, query = target.partition("?")
                fields = {name.lower(): value for name, value in re.findall(r"(?m)^([^:\s]+): (.*)\r$", head)}
                body = await reader.readexactly(int(fields.get("content-length", 0)))
                said = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
                self.asked.append(Asked(method, path, said, fields.get("authorization", ""), body))
                if not self.answers:
                    self.silent.set()
                    continue
                content = self.answers.pop(0)
                writer.write(content.removesuffix(HANG_UP))
                if content.endswith(HANG_UP):
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
