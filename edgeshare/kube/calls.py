"""The cluster's API server, asked from an event loop: any number of calls at a time, without a thread for each."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import urlencode

from aiohttp import ClientError, DummyCookieJar, StreamReader
from aiohttp.http import HttpProcessingError
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.client.rest import should_bypass_proxies

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.client_library import authorization_by, settings_of
from edgeshare.kube.kube import CALL_TIMEOUT_S, JSON
from edgeshare.kube.list_reader import CHUNK_BYTES, ListReader
from edgeshare.kube.messages import (
    OK,
    WATCH_S,
    check_list,
    check_watch,
    page_query,
    parse_answer,
    parse_change,
    watch_query,
)
from edgeshare.kube.parts import reader_of

T = TypeVar("T")

SAME = ("host", "ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "tls_server_name", "proxy")
"""What the client's two kinds of configuration have in common, and decides how a server is reached."""


class Change(TypedDict, Generic[T], total=False):
    """A line of a watch."""

    type: Any
    object: T


class Calls:
    """An API server and the right to ask it."""

    def __init__(self, kubeconfig: Path | None) -> None:
        """By a kubeconfig file, or else with the pod's service account. Raises Unavailable where there is no such
        right."""
        settings = settings_of(kubeconfig)
        self._host = settings.host
        self._authorization = authorization_by(settings)
        same = {name: getattr(settings, name) for name in SAME}
        if should_bypass_proxies(settings.host, settings.no_proxy or ""):
            same["proxy"] = None
        self._session_settings: dict[str, Any] = {"trust_env": False}
        configuration = Configuration(**same, client_session_kwargs=self._session_settings)
        try:
            self._rest: Any = ApiClient(configuration).rest_client
        except OSError as error:
            raise Unavailable(f"certificates for the API server cannot be used: {error}") from error

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keeps connections until it is left."""
        # An API server sets no cookies, and a jar is looked through at each call. One is made in the loop it is for.
        self._session_settings["cookie_jar"] = DummyCookieJar()
        try:
            yield
        finally:
            await self._rest.close()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = JSON,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> dict[str, Any] | None:
        """Asks once: an object; None where there is nothing at that path. Raises Refused, Conflicting or Unavailable
        (edgeshare.kube.kube)."""
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._ask(method, path, body, content_type)
                content = await answer.read()
        except (ClientError, OSError) as error:
            raise Unavailable(f"the API server cannot be asked ({method} {path}): {_why(error)}") from error
        return parse_answer(method, path, answer.status, content)

    async def objects(
        self, path: str, selector: str, keep: Callable[[dict[str, Any]], T | None]
    ) -> tuple[list[T], str]:
        """See Kube.objects."""
        reader = ListReader(path, keep)
        while not reader.is_whole:
            asked = f"{path}?{urlencode(page_query(selector, reader.following))}"
            try:
                async with asyncio.timeout(CALL_TIMEOUT_S):
                    answer = await self._ask("GET", asked)
                    with closing(answer.response), reader.page() as take:
                        if answer.status != OK:
                            check_list(path, answer.status, await answer.read())
                        async for chunk in answer.response.content.iter_chunked(CHUNK_BYTES):
                            take(chunk)
            except (ClientError, OSError) as error:
                raise Unavailable(f"the API server cannot be asked (GET {asked}): {_why(error)}") from error
        return reader.kept, reader.version

    async def changes(self, path: str, selector: str, version: str, shape: Any = Any) -> AsyncGenerator[dict[str, Any]]:
        """See Kube.changes. Of each object that is of the ``shape`` no more is made than that names (parts.py)."""
        read = reader_of(Change[shape])
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                answer = await self._ask("GET", f"{path}?{urlencode(watch_query(selector, version))}")
        except (ClientError, OSError) as error:
            raise Unavailable(f"the API server cannot be watched ({path}): {_why(error)}") from error
        with closing(answer.response):
            check_watch(path, version, answer.status)
            while line := await _line(path, answer.response.content):
                yield _change(path, line, read)

    async def _ask(self, method: str, path: str, body: object = None, content_type: str = JSON) -> Any:
        headers = {"Accept": JSON, "Content-Type": content_type}
        authorization = self._authorization()
        if authorization:
            headers["Authorization"] = authorization
        return await self._rest.request(method, f"{self._host}{path}", headers, body)


def _change(path: str, line: bytes, read: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    """As parse_change, which has the word on what ``read`` cannot read."""
    try:
        change = read(line)
    except ValueError:
        return parse_change(path, line)
    return parse_change(path, line) if change.get("type") == "ERROR" else change


async def _line(path: str, content: StreamReader) -> bytes:
    try:
        async with asyncio.timeout(WATCH_S + CALL_TIMEOUT_S):
            return await content.readline()
    except (ClientError, OSError) as error:
        raise Unavailable(f"a watch of {path} broke off: {_why(error)}") from error
    except (HttpProcessingError, ValueError) as error:
        # A ValueError with an older aiohttp.
        raise Unavailable(f"a watch of {path} broke off: a line of it has no end") from error


def _why(error: Exception) -> str:
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
