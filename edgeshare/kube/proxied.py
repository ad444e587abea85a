"""An API server behind a proxy, asked as one without is (see ``connections``). The importer of aiohttp."""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.http import HttpProcessingError

from edgeshare.kube.connections import CONNECTIONS_MAX


class Proxied:
    """See connections.Connections."""

    def __init__(self, url: str, context: ssl.SSLContext, server_name: str | None, proxy: str) -> None:
        """``proxy`` is its URL; for the others see connections.Connections."""
        self._url = url
        self._context = context
        self._server_name = server_name
        self._proxy = proxy
        self._session: ClientSession | None = None
        """Made in the loop it is for."""

    async def ask(self, method: str, target: str, fields: dict[str, str], body: bytes | None) -> "Answer":
        """See connections.Connections."""
        if self._session is None:
            connector = TCPConnector(ssl=self._context, limit=CONNECTIONS_MAX)
            # An API server sets no cookies, and a jar is looked through at each call.
            self._session = ClientSession(connector=connector, cookie_jar=DummyCookieJar())
        with _as_os_errors():
            response = await self._session.request(
                method,
                f"{self._url}{target}",
                headers=fields,
                data=body,
                proxy=self._proxy,
                server_hostname=self._server_name,
                allow_redirects=False,
                timeout=ClientTimeout(total=None),
            )
        return Answer(response)

    async def close(self) -> None:
        """Ends all connections."""
        if self._session is not None:
            await self._session.close()


class Answer:
    """See answer.Answer."""

    def __init__(self, response: ClientResponse) -> None:
        self.status = response.status
        self._response = response
        self._silent_s: float | None = None

    async def some(self, take: Callable[[bytes], bytes] | None = None) -> bytes:
        """See answer.Answer; nothing is told to ``take``."""
        with _as_os_errors():
            async with asyncio.timeout(self._silent_s):
                return await self._response.content.readany()

    async def read(self) -> bytes:
        """See answer.Answer."""
        with _as_os_errors():
            return await self._response.read()

    def end_when_silent(self, silent_s: float) -> None:
        """See answer.Answer."""
        self._silent_s = silent_s

    def close(self) -> None:
        """See answer.Answer."""
        self._response.close()


@contextmanager
def _as_os_errors() -> Iterator[None]:
    try:
        yield
    except (ClientError, HttpProcessingError, ValueError) as error:
        if isinstance(error, OSError):
            raise
        raise ConnectionError(str(error) or type(error).__name__) from error
