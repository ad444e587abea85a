"""Answers kube-scheduler: one path a verb, JSON in and out, over TLS where that is configured."""

import asyncio
import logging
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from inspect import iscoroutinefunction
from time import monotonic_ns
from typing import Any

from edgeshare.contract.address import join_address, parse_address
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.kube.json_parts import write
from edgeshare.log_limit import LogLimit
from edgeshare.tls_files import why_not_let_in
from sharemgr.cluster.server import http1, http2
from sharemgr.cluster.server.accepting import Acceptor
from sharemgr.cluster.server.answers import Answer, Asked
from sharemgr.cluster.server.bodies import Bodies
from sharemgr.cluster.server.certificates import common_names
from sharemgr.cluster.server.connection import ClientConnection, Terms
from sharemgr.cluster.server.endings import Ending, Endings, Telling

logger = logging.getLogger(__name__)

Verb = Callable[[bytes], object | Coroutine[Any, Any, object]]
"""Takes a request's body, and returns what is answered as JSON, at once where it waits for nothing. Raises
InvalidRequest for what can never be answered, Unavailable for what can be later."""

VERBS = ("filter", "prioritize", "bind", "preempt")

BODY_BYTES_MAX = 4 * 1024 * 1024
"""The names of 5,000 nodes and a pod are a tenth of it."""

KEEP_ALIVE_S = 120
"""Longer than kube-scheduler keeps a connection that it does not use (90 s, apimachinery's SetTransportDefaults): where
the server closes first, a request can meet the end of its connection."""

END_S = 5
"""What is being answered at the end is waited for: a bind takes less."""


class Server:
    """Serves the verbs at one address."""

    def __init__(
        self,
        address: str,
        clients: Collection[str],
        answering: Callable[[], Mapping[str, Verb]],
        answered: Callable[[str, int], None],
        ended: Callable[[Ending], None],
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        """``clients``: the common names that are let in; none: everyone whom TLS lets in. ``answering`` gives the
        verbs, at each request, or raises Unavailable; ``answered`` is told of each answer's verb and status, ``ended``
        of each connection that is ended before its client would end it, and why."""
        self._address = address
        self._clients = frozenset(clients)
        self._answering = answering
        self._answered = answered
        self._connections: set[ClientConnection] = set()
        self.client_end_s: float | None = None
        """When the certificate of who was let in last holds no more, in seconds since 1970; None: there was none."""
        self.bodies = Bodies()
        """What is kept of requests, of all connections."""
        self._now_ns = now_ns
        self._limits: defaultdict[tuple[str, HTTPStatus], LogLimit] = defaultdict(LogLimit)
        self._acceptor = Acceptor(self._refusal, self._speaking, Endings(ended, now_ns))

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None) -> AsyncIterator[str]:
        """Serves while it is entered, over TLS if there is a ``context``; yields the URL. Raises Unavailable where it
        cannot listen."""
        with listener(self._address) as listening:
            self._acceptor.context = context
            async with asyncio.TaskGroup() as tasks:
                accepting = tasks.create_task(self._acceptor.accept(listening))
                try:
                    host, _ = parse_address(self._address)
                    scheme = "http" if context is None else "https"
                    yield f"{scheme}://{join_address(host, listening.getsockname()[1])}"
                finally:
                    accepting.cancel()
                    await asyncio.wait([accepting])
                    await self._end()

    async def use(self, context: ssl.SSLContext | None) -> None:
        """Goes by this for the connections that come from now on; none is turned away meanwhile, and those that are
        there, which would last for days, are left when they have answered once more, those of HTTP/2 when all that came
        over them is answered."""
        self._acceptor.context = context
        for connection in list(self._connections):
            connection.leave()

    def _speaking(self, transport: asyncio.Transport, tell: Telling) -> asyncio.Protocol:
        terms = Terms(self._answer, BODY_BYTES_MAX, KEEP_ALIVE_S, self._connections, self.bodies, tell)
        tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == http2.NAME:
            return http2.Connection(terms)
        return http1.Connection(terms)

    async def _end(self) -> None:
        for connection in list(self._connections):
            connection.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await asyncio.gather(*(connection.over.wait() for connection in self._connections))
        for connection in list(self._connections):
            connection.abort()

    def _answer(self, asked: Asked) -> Answer | Coroutine[Any, Any, Answer]:
        verb = asked.path.partition("?")[0].removeprefix("/")
        if verb not in VERBS or not asked.path.startswith("/"):
            return _text(HTTPStatus.NOT_FOUND, f"there are /{', /'.join(VERBS)}")
        if asked.method != "POST":
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, f"{verb} is to be posted")
        if asked.body is None:
            answer = _text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {BODY_BYTES_MAX} bytes")
        else:
            try:
                found = self._answering()[verb]
                if iscoroutinefunction(found):
                    return self._answer_later(verb, found, asked.body)
                answer = _json(found(asked.body))
            except Exception as error:
                answer = self._failed(verb, error)
        self._answered(verb, answer.status)
        return answer

    async def _answer_later(
        self, verb: str, find: Callable[[bytes], Coroutine[Any, Any, object]], body: bytes
    ) -> Answer:
        try:
            answer = _json(await find(body))
        except Exception as error:
            answer = self._failed(verb, error)
        self._answered(verb, answer.status)
        return answer

    def _failed(self, verb: str, error: Exception) -> Answer:
        if isinstance(error, InvalidRequest):
            if (more := self._more(verb, HTTPStatus.BAD_REQUEST)) is not None:
                logger.warning("%s refused: %s%s", verb, error, more)
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        if isinstance(error, Unavailable):
            # Another replica leads: a Service would not lead there while this connection is kept.
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(error))._replace(is_last=True)
        if (more := self._more(verb, HTTPStatus.INTERNAL_SERVER_ERROR)) is not None:
            logger.error("%s failed%s", verb, more, exc_info=error)
        return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{verb} failed: the assigner's log says why")

    def _more(self, verb: str, status: HTTPStatus) -> str | None:
        """What a line of such an answer ends with; None: it goes unsaid, as whoever may ask may ask again and again."""
        return self._limits[verb, status].ending(self._now_ns())

    def _refusal(self, certificate: Mapping[str, object]) -> str:
        """Why who shows it is not let in; empty where it is, and then it is noted until when it holds."""
        if self._clients and (why := why_not_let_in(common_names(certificate), self._clients, "tls.clients")):
            return why
        if ends := certificate.get("notAfter"):
            self.client_end_s = float(ssl.cert_time_to_seconds(str(ends)))
        return ""


def _json(found: object) -> Answer:
    return Answer(HTTPStatus.OK, "application/json", write(found))


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, "text/plain", f"{text}\n".encode())


def listener(address: str, setting: str = "address") -> socket.socket:
    """A socket that listens there, on every address where none is named. Raises Unavailable, naming the setting that
    the address is from, where it cannot."""
    host, port = parse_address(address)
    try:
        if host:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, where = found[0]
            return socket.create_server(where[:2], family=family)
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        raise Unavailable(
            f"{setting} {address}: cannot be listened on: {error.strerror or error}; choose another"
        ) from error
