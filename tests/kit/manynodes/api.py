"""Many calls to the API server at once, which edgeshare's own client is not made for."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.kit.processes.errors import NodeError

Json = dict[str, Any]

AT_ONCE = 32


class Api:
    """An API server, asked by its administrator."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def post(self, path: str, body: Json) -> None:
        """Make an object. Raises NodeError where it is refused."""
        await self._send("POST", path, body)

    async def delete_all(self, path: str) -> None:
        """Delete all that is at a path, at once."""
        await self._send("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    async def items(self, path: str) -> list[Json]:
        """All that is at a path."""
        async with self._session.get(path) as answer:
            content: Json = await answer.json()
            return list(content["items"])

    async def post_all(self, objects: Iterable[tuple[str, Json]]) -> None:
        """Make objects, each at its path, in no particular order."""
        waiting = iter(objects)

        async def one_after_the_other() -> None:
            for path, body in waiting:
                await self.post(path, body)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(one_after_the_other())

    async def post_paced(self, objects: Iterable[tuple[str, Json]], every_s: float) -> None:
        """Make objects, one each so many seconds, however long the making of one takes."""
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        async with asyncio.TaskGroup() as group:
            for path, body in objects:
                group.create_task(self.post(path, body))
                due_s += every_s
                await asyncio.sleep(due_s - loop.time())

    async def _send(self, method: str, path: str, body: Json) -> None:
        headers = {"Content-Type": "application/json"}
        async with self._session.request(method, path, data=json.dumps(body), headers=headers) as answer:
            content = await answer.read()
            if not answer.ok:
                raise NodeError(f"the API server refuses {method} {path}: {answer.status} {content[:300]!r}")


@asynccontextmanager
async def api(url: str, authority: Path, certificate: Path, key: Path) -> AsyncIterator[Api]:
    """The API server at an address, asked with a certificate that it knows."""
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    connector = aiohttp.TCPConnector(ssl=context, limit=AT_ONCE)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        yield Api(session)
