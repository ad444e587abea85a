"""Answers kube-scheduler: one path a verb, JSON in and out, over TLS where that is configured."""

import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web

from edgeshare.errors import InvalidRequest, Unavailable
from sharemgr.cluster.certificates import common_names

logger = logging.getLogger(__name__)

Verb = Callable[[bytes], Awaitable[object]]
"""Takes a request's body, and returns what is answered as JSON. Raises InvalidRequest for what can never be answered,
Unavailable for what can be later."""

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
    ) -> None:
        """``clients``: the common names that are let in; none: everyone whom TLS lets in. ``answering`` gives the
        verbs, at each request, or raises Unavailable; ``answered`` is told of each answer's verb and status."""
        self._address = address
        self._clients = frozenset(clients)
        self._answering = answering
        self._answered = answered
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post(f"/{{verb:{'|'.join(VERBS)}}}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=KEEP_ALIVE_S, shutdown_timeout=END_S, handle_signals=False
        )
        self._listener: socket.socket | None = None
        self._site: web.SockSite | None = None

    @asynccontextmanager
    async def running(self, context: ssl.SSLContext | None) -> AsyncIterator[str]:
        """Serves while it is entered, over TLS if there is a ``context``; yields the URL. Raises Unavailable where it
        cannot listen."""
        with _listener(self._address) as self._listener:
            await self._runner.setup()
            try:
                await self.use(context)
                host, _, _ = self._address.rpartition(":")
                scheme = "http" if context is None else "https"
                yield f"{scheme}://{host}:{self._listener.getsockname()[1]}"
            finally:
                await self._runner.cleanup()

    async def use(self, context: ssl.SSLContext | None) -> None:
        """Goes by this for the connections that come from now on; none is turned away meanwhile."""
        assert self._listener is not None
        before = self._site
        # Both listen at the same socket, so that it is never closed.
        self._site = web.SockSite(self._runner, self._listener.dup(), ssl_context=context)
        await self._site.start()
        if before is not None:
            await before.stop()

    async def _handle(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        refusal = self._refusal(request)
        if refusal:
            logger.warning("%s refused: %s", verb, refusal)
        response = _text(HTTPStatus.FORBIDDEN, refusal) if refusal else await self._response(verb, request)
        self._answered(verb, response.status)
        return response

    async def _response(self, verb: str, request: web.Request) -> web.Response:
        try:
            verbs = self._answering()
            answer = await verbs[verb](await request.read())
            body = json.dumps(answer, separators=(",", ":")).encode()
            return web.Response(body=body, content_type="application/json")
        except InvalidRequest as error:
            logger.warning("%s refused: %s", verb, error)
            return _text(HTTPStatus.BAD_REQUEST, str(error))
        except Unavailable as error:
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except web.HTTPRequestEntityTooLarge:
            return _text(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {BODY_BYTES_MAX} bytes")
        except (web.RequestPayloadError, ConnectionError) as error:
            # The other side's doing, which nobody is there to be told of.
            return _text(HTTPStatus.BAD_REQUEST, f"the request broke off: {error}")
        except Exception:
            logger.exception("%s failed", verb)
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{verb} failed: the assigner's log says why")

    def _refusal(self, request: web.Request) -> str:
        """Why who asks is not let in; empty where it is."""
        names = common_names(request.get_extra_info("peercert") or {})
        if not self._clients or (names and self._clients.issuperset(names)):
            return ""
        came, let_in = ", ".join(names) or "nobody", ", ".join(sorted(self._clients))
        return f"the client's certificate names {came}: let in are {let_in} (tls.clients)"


def _text(status: HTTPStatus, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")


def _listener(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        if host:
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, _, _, _, where = found[0]
            return socket.create_server(where[:2], family=family)
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", int(port)))
    except OSError as error:
        raise Unavailable(
            f"address {address}: cannot be listened on: {error.strerror or error}; choose another"
        ) from error
