"""Who is shown the cluster's page: by the header or the cookie of a request, and by what an API server on a real socket
says of its token; on a clock of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from pathlib import Path

import pytest

from edgeshare.contract.errors import EdgeshareError, Forbidden, InvalidRequest, Unauthenticated, Unavailable
from edgeshare.http.answering import Page, Request, Stream
from edgeshare.kube.calls import Calls
from edgeshare.shown.feed import CLUSTER_LOOK_S
from edgeshare.v1.cluster_pb2 import ClusterState, NodeState
from sharemgr.cluster.status.page import COOKIE, ClusterPage
from sharemgr.cluster.status.page_feeds import PageFeeds, WaitingPods
from sharemgr.cluster.status.query import Query
from sharemgr.cluster.status.rights import FRESH_S, Rights
from tests.kit.apiserver.answering_server import Server, answer
from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.machine.clock import Clock

KNOWN = answer({"status": {"authenticated": True, "user": {"username": "me"}}})
UNKNOWN = answer({"status": {"authenticated": False}})
YES, NO = (answer({"status": {"allowed": allowed}}) for allowed in (True, False))
REFUSED: dict[type[EdgeshareError], tuple[bytes, ...]] = {Unauthenticated: (UNKNOWN,), Forbidden: (KNOWN, NO)}
BY_HEADER = ("authorization", "Bearer t")
BY_COOKIE = ("cookie", f"other=1; {COOKIE}=t; more=2")


class Site:
    """The page, and the API server that is asked."""

    def __init__(self, server: Server, calls: Calls) -> None:
        self.server = server
        self.now_s = 1000.0
        self.feeds = PageFeeds(self.tell, WaitingPods(), Clock(), Clock())
        self.pages = ClusterPage(Rights(calls, lambda: self.now_s), self.feeds).pages()

    async def tell(self, query: Query) -> ClusterState:
        return ClusterState(nodes=[NodeState(node=query.namespace or "all")])

    async def ask(self, path: str, *headers: tuple[str, str], query: str = "", says: tuple[bytes, ...] = ()) -> Page:
        """What is answered while the API server has these answers."""
        self.server.answers[:] = says
        found = await self.pages[path](Request(query, headers))
        assert isinstance(found, Page)
        return found

    async def follow(self, *headers: tuple[str, str], says: tuple[bytes, ...] = ()) -> Stream:
        self.server.answers[:] = says
        found = await self.pages["/events"](Request("", headers))
        assert isinstance(found, Stream)
        return found


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    server = Server()
    async with server.running():
        calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": server.url}))
        async with calls.open():
            yield Site(server, calls)


@pytest.mark.parametrize("shown", [BY_HEADER, BY_COOKIE], ids=["header", "cookie"])
async def test_who_may_see_it_is_shown_the_page_by_a_header_and_by_a_cookie(site: Site, shown: tuple[str, str]) -> None:
    page = await site.ask("/", shown, says=(KNOWN, YES))
    assert (page.status, b'src="page.js"' in page.body) == (HTTPStatus.OK, True)


@pytest.mark.parametrize("error", list(REFUSED))
async def test_who_may_not_is_shown_the_form_and_told_why(site: Site, error: type[EdgeshareError]) -> None:
    page = await site.ask("/", BY_COOKIE, says=REFUSED[error])
    assert (page.status, b'src="login.js"' in page.body) == ({Unauthenticated: 401, Forbidden: 403}.get(error), True)
    for path in ("/session", "/events"):
        with pytest.raises(error):
            await site.ask(path, BY_COOKIE)


async def test_without_a_token_the_api_server_is_not_asked(site: Site) -> None:
    assert (await site.ask("/", ("cookie", "other=1"))).status == 401
    for path in ("/session", "/events"):
        with pytest.raises(Unauthenticated, match="a token of Kubernetes is needed"):
            await site.ask(path)
    for headers in ([("authorization", "Basic t")], [BY_HEADER, BY_HEADER], [("cookie", f"{COOKIE}=")]):
        with pytest.raises(Unauthenticated):
            await site.ask("/session", *headers)
    assert site.server.asked == []


async def test_an_api_server_that_does_not_answer_is_no_login(site: Site) -> None:
    with pytest.raises(Unavailable):
        await site.ask("/", BY_HEADER, says=(answer({"message": "not now"}, 503),))


async def test_a_token_is_kept_where_no_script_and_no_other_site_gets_it_and_forgotten(site: Site) -> None:
    kept = (await site.ask("/session", BY_HEADER, says=(KNOWN, YES))).headers["Set-Cookie"]
    value, *terms = kept.split("; ")
    assert value == f"{COOKIE}=t"
    assert sorted(terms) == ["HttpOnly", "Path=/", "SameSite=Strict", "Secure"]
    gone = (await site.ask("/forget", BY_COOKIE)).headers["Set-Cookie"]
    assert gone.split("; ") == [f"{COOKIE}=", *terms, "Max-Age=0"]


@pytest.mark.parametrize("token", ["a;b", "a,b", 'a"b', "x" * 3901])
async def test_a_token_that_no_cookie_takes_is_refused_with_what_to_take(site: Site, token: str) -> None:
    with pytest.raises(InvalidRequest, match="no browser keeps this token"):
        await site.ask("/session", ("authorization", f"Bearer {token}"), says=(KNOWN, YES))


async def test_of_a_namespace_the_right_is_asked_for_there(site: Site) -> None:
    await site.ask("/", BY_HEADER, query="namespace=team", says=(KNOWN, YES))
    assert b'"namespace":"team"' in site.server.asked[1].body.replace(b" ", b"")
    for nonsense in ("namespace=Team", "namespace=a%2fb", "namespace=" + "x" * 64):
        with pytest.raises(InvalidRequest, match="namespace= names none"):
            await site.ask("/", BY_HEADER, query=nonsense)


async def test_who_follows_is_told_until_his_right_is_gone(site: Site, let_pass: Callable[[float], None]) -> None:
    running = asyncio.create_task(site.feeds.run())
    stream = await site.follow(BY_COOKIE, says=(KNOWN, YES))
    told = [await anext(stream.parts) for _ in range(2)]
    assert any(b'"name":"all"' in part for part in told)
    site.now_s += FRESH_S
    site.server.answers[:] = (KNOWN, NO)
    let_pass(CLUSTER_LOOK_S)
    with pytest.raises(StopAsyncIteration):
        await anext(stream.parts)
    running.cancel()
