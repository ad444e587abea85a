"""The cluster's page, to browsers of those who may know: who it is says a token of Kubernetes, in a header or in the
cookie that it is kept in, and what he may the same rights as of a call."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from http import HTTPStatus
from time import monotonic_ns, time_ns
from urllib.parse import parse_qs

from edgeshare.contract.errors import EdgeshareError, Forbidden, InvalidRequest, Unauthenticated
from edgeshare.http.answering import Page, Pages, Request, Stream, error_page, text_page
from edgeshare.http.web import CONNECTIONS_MAX, Terms
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import follow, read
from edgeshare.shown.page_files import FILES, HEADERS, LOGIN, LOGIN_FILES, file_page, file_pages
from edgeshare.shown.waiting_pods import PODS, WAITING, parse_waiting
from sharemgr.cluster.config import NAMESPACE, Status, Tls
from sharemgr.cluster.server.web_serving import web_serving
from sharemgr.cluster.status.page_feeds import PageFeeds, WaitingPods
from sharemgr.cluster.status.query import Query
from sharemgr.cluster.status.rights import Rights, token_of
from sharemgr.cluster.status.teller import Teller

logger = logging.getLogger(__name__)

COOKIE = "__Host-edgeshare-token"
"""By this prefix a browser takes it over TLS alone, of this host alone and for all paths (RFC 6265bis, 4.1.3.2)."""

TERMS = "Path=/; Secure; HttpOnly; SameSite=Strict"
"""Until the browser is closed; no script reads it, and no other site's page has it sent."""

KEPT = re.compile(r"[A-Za-z0-9._~+/=-]{1,3900}")
"""A token that a cookie takes: a browser keeps 4096 bytes with its name."""

NO_TOKEN = (
    "a token of Kubernetes is needed: give one, as of `kubectl create token`, or send 'Authorization: Bearer TOKEN'"
)


class ClusterPage:
    """What is served under each path."""

    def __init__(self, rights: Rights, feeds: PageFeeds) -> None:
        self._rights = rights
        self._feeds = feeds

    def pages(self) -> Pages:
        """What makes the page of each path."""
        own: Pages = {"/": self._page, "/session": self._session, "/forget": self._forget, "/events": self._events}
        return {**file_pages(FILES | LOGIN_FILES), **own}

    async def _page(self, request: Request) -> Page:
        try:
            await self._admit(request)
        except (Unauthenticated, Forbidden) as error:
            refused = error_page(error)
            return file_page(LOGIN, refused.status, **refused.headers)
        return file_page(FILES["/"])

    async def _session(self, request: Request) -> Page:
        """Keeps the token of somebody who may see the page."""
        token, _ = await self._admit(request)
        if not KEPT.fullmatch(token):
            raise InvalidRequest(
                "no browser keeps this token, which is too long or of unusual characters: take one of a service "
                "account, as of `kubectl create token`"
            )
        return text_page(HTTPStatus.OK, "this token is kept", **{"Set-Cookie": f"{COOKIE}={token}; {TERMS}"})

    async def _forget(self, _: Request) -> Page:
        return file_page(LOGIN, HTTPStatus.OK, **{"Set-Cookie": f"{COOKIE}=; {TERMS}; Max-Age=0"})

    async def _events(self, request: Request) -> Stream:
        token, query = await self._admit(request)
        return Stream("text/event-stream", self._followed(token, query))

    async def _followed(self, token: str, query: Query) -> AsyncGenerator[bytes, None]:
        """What there is to tell, for as long as it may be told."""
        with self._feeds.followed(query) as feed:
            async with aclosing(feed.follow()) as parts:
                async for part in parts:
                    try:
                        await self._rights.check(token, query)
                    except EdgeshareError:
                        # Who asks again is told why.
                        return
                    yield part

    async def _admit(self, request: Request) -> tuple[str, Query]:
        """The token of who asks, and of what, where he may. Raises as Rights.check, and InvalidRequest."""
        token, query = _token(request), _query(request)
        await self._rights.check(token, query)
        return token, query


def _token(request: Request) -> str:
    shown = [(name, value) for name, value in request.headers if name == "authorization"]
    if not shown:
        cookies = [each.strip() for name, value in request.headers if name == "cookie" for each in value.split(";")]
        kept = [value for name, _, value in (each.partition("=") for each in cookies) if name == COOKIE]
        shown = [("authorization", f"Bearer {value}") for value in kept]
    if not shown:
        raise Unauthenticated(NO_TOKEN)
    return token_of(shown)


def _query(request: Request) -> Query:
    namespace = parse_qs(request.query).get("namespace", [""])[0]
    if namespace and not re.fullmatch(NAMESPACE, namespace):
        raise InvalidRequest("?namespace= names none that Kubernetes can have")
    return Query(namespace)


@asynccontextmanager
async def serving(config: Status, calls: Calls, teller: Teller, rights: Rights) -> AsyncIterator[None]:
    """Serves it while it is entered. Raises InvalidRequest for files that cannot be used, Unavailable where it cannot
    listen."""
    waiting = WaitingPods()
    feeds = PageFeeds(teller.whole, waiting, monotonic_ns, time_ns)
    terms = Terms("status.page_address", CONNECTIONS_MAX, HEADERS)
    tls = Tls(certificate=config.certificate, private_key=config.private_key)
    told_of_pods = (partial(read, parse_waiting), waiting.listed, waiting.told)
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(follow(calls, PODS, WAITING, *told_of_pods)),
            group.create_task(feeds.run()),
        ]
        try:
            async with web_serving(config.page_address, tls, ClusterPage(rights, feeds).pages(), terms) as address:
                logger.info("the cluster's page at https://%s/", address)
                yield
        finally:
            for task in tasks:
                task.cancel()
