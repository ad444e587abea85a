"""The cluster's API server, asked from an event loop: any number of calls at a time, without a thread for each."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import Any, Generic, Protocol, TypedDict, TypeVar
from urllib.parse import urlencode

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.client_library import authorization_by, settings_of
from edgeshare.kube.connections import Connections
from edgeshare.kube.json_parts import reader_of, write
from edgeshare.kube.kube import CALL_TIMEOUT_S, JSON
from edgeshare.kube.list_reader import ListReader
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

T = TypeVar("T")

LINE_BYTES_MAX = 4 * 1024 * 1024
"""Of a watch. etcd takes requests of 1.5 MiB (its --max-request-bytes)."""


_read = reader_of(Any)


class Answer(Protocol):
    """See answer.Answer."""

    status: int

    async def some(self, take: Callable[[bytes], bytes] | None = None) -> bytes: ...

    async def read(self) -> bytes: ...

    def end_when_silent(self, silent_s: float) -> None: ...

    def close(self) -> None: ...


class Asking(Protocol):
    """See connections.Connections."""

    async def ask(self, method: str, target: str, fields: dict[str, str], body: bytes | None) -> Answer: ...

    async def close(self) -> None: ...


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
        self._authorization = authorization_by(settings)
        proxy = _proxy(settings)
        if proxy is None:
            # Of http nothing is verified; to read whom the system trusts takes 30 ms of a processor.
            context = None if settings.host.lower().startswith("http:") else _tls(settings)
            self._server: Asking = Connections(settings.host, context, settings.tls_server_name)
        else:
            # Loaded only for a proxy: it takes a client that can all of HTTP.
            from edgeshare.kube.proxied import Proxied  # noqa: PLC0415

            self._server = Proxied(settings.host, _tls(settings), settings.tls_server_name, proxy)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keeps connections until it is left."""
        try:
            yield
        finally:
            await self._server.close()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = JSON,
        timeout_s: float | None = CALL_TIMEOUT_S,
    ) -> dict[str, Any] | None:
        """Asks once: an object; None where there is nothing at that path. Without a ``timeout_s`` whoever asks
        gives it up himself. Raises Refused, Conflicting or Unavailable (edgeshare.kube.messages)."""
        try:
            async with nullcontext() if timeout_s is None else asyncio.timeout(timeout_s):
                answer = await self._ask(method, path, body, content_type)
                with closing(answer):
                    content = await answer.read()
        except OSError as error:
            raise Unavailable(f"the API server cannot be asked ({method} {path}): {_why(error)}") from error
        return parse_answer(method, path, answer.status, content, _read)

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
                    with closing(answer), reader.page() as take:
                        if answer.status != OK:
                            check_list(path, answer.status, await answer.read())
                        while chunk := await answer.some():
                            take(chunk)
            except OSError as error:
                raise Unavailable(f"the API server cannot be asked (GET {asked}): {_why(error)}") from error
        return reader.kept, reader.version

    async def changes(
        self, path: str, selector: str, version: str, tell: Callable[[dict[str, Any]], None], shape: Any = Any
    ) -> None:
        """Tells each change as it comes, and returns when the watch has ended; see Kube.changes. Of each object that is
        of the ``shape`` no more is made than that names (json_parts.py). What ``tell`` raises ends it."""
        read = reader_of(Change[shape])
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                answer = await self._ask("GET", f"{path}?{urlencode(watch_query(selector, version))}")
        except OSError as error:
            raise Unavailable(f"the API server cannot be watched ({path}): {_why(error)}") from error
        with closing(answer):
            check_watch(path, version, answer.status)
            answer.end_when_silent(WATCH_S + CALL_TIMEOUT_S)
            lines = _Lines(path, read, tell)
            while some := await _some(path, answer, lines.take):
                left = lines.take(some)
                while left:
                    # What is here already would be told without a pause, and there may be much of it.
                    await asyncio.sleep(0)
                    left = lines.take(left)
            if lines.begun:
                raise Unavailable(f"a watch of {path} broke off: in a line")

    async def _ask(self, method: str, target: str, body: object = None, content_type: str = JSON) -> Answer:
        fields = {"Accept": JSON, "Content-Type": content_type}
        authorization = self._authorization()
        if authorization:
            fields["Authorization"] = authorization
        return await self._server.ask(method, target, fields, None if body is None else write(body))


class _Lines:
    """What comes of a watch: each line is a change, and is told."""

    def __init__(
        self, path: str, read: Callable[[bytes], dict[str, Any]], tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self.begun = b""
        """What has come of a line whose end has not."""
        self._path = path
        self._read = read
        self._tell = tell

    def take(self, some: bytes) -> bytes:
        """Tells the first change whose line ends in what came, and returns what comes after that."""
        end = some.find(b"\n")
        if end < 0:
            self.begun += some
            if len(self.begun) > LINE_BYTES_MAX:
                raise Unavailable(f"a watch of {self._path} broke off: a line of it has no end")
            return b""
        line, self.begun = self.begun + some[:end], b""
        self._tell(_change(self._path, line, self._read))
        return some[end + 1 :]


def _tls(settings: Configuration) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except OSError as error:
        raise Unavailable(f"certificates for the API server cannot be used: {error}") from error
    if not settings.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _proxy(settings: Configuration) -> str | None:
    """The URL of the proxy; None: there is none between."""
    return None if should_bypass_proxies(settings.host, settings.no_proxy or "") else settings.proxy or None


def _change(path: str, line: bytes, read: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    """As parse_change, which has the word on what ``read`` cannot read."""
    try:
        change = read(line)
    except ValueError:
        return parse_change(path, line)
    return parse_change(path, line) if change.get("type") == "ERROR" else change


async def _some(path: str, answer: Answer, take: Callable[[bytes], bytes]) -> bytes:
    try:
        return await answer.some(take)
    except OSError as error:
        raise Unavailable(f"a watch of {path} broke off: {_why(error)}") from error


def _why(error: Exception) -> str:
    return str(error) or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
