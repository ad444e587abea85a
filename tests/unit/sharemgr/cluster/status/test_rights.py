"""How long what the API server said of a caller is gone by: on a clock of the test's own, with a server on a real
socket that says what the test has it say."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.errors import Forbidden, Unauthenticated, Unavailable
from edgeshare.kube.calls import Calls
from sharemgr.cluster.status.query import Query
from sharemgr.cluster.status.rights import AWAY_S, FRESH_S, KNOWN_MAX, REFUSED_S, Rights, token_of
from tests.kit.apiserver.answering_server import HANG_UP, Server, answer
from tests.kit.apiserver.kubeconfig import kubeconfig

USER = {"username": "me", "uid": "1", "groups": ["team"], "extra": {"scope": ["a"]}}
KNOWN = answer({"status": {"authenticated": True, "user": USER}})
UNKNOWN = answer({"status": {"authenticated": False}})
YES, NO = (answer({"status": {"allowed": allowed}}) for allowed in (True, False))
ALL = Query()


class World:
    """Who is asked, and what time it is."""

    def __init__(self, server: Server, calls: Calls) -> None:
        self.server = server
        self.now_s = 1000.0
        self.rights = Rights(calls, lambda: self.now_s)

    async def check(self, *answers: bytes, token: str = "t", query: Query = ALL) -> int:
        """How often the API server was asked, which has these answers."""
        before = len(self.server.asked)
        self.server.answers[:] = answers
        await self.rights.check(token, query)
        return len(self.server.asked) - before


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    server = Server()
    async with server.running():
        calls = Calls(kubeconfig(tmp_path / "kubeconfig", {"server": server.url}))
        async with calls.open():
            yield World(server, calls)


def asked(world: World, place: int) -> tuple[str, Any]:
    found = world.server.asked[place]
    return f"{found.method} {found.path}", json.loads(found.body)["spec"]


async def test_the_api_server_is_asked_whose_the_token_is_and_what_that_one_may(world: World) -> None:
    assert await world.check(KNOWN, YES, query=Query("team", "web")) == 2
    assert asked(world, 0) == ("POST /apis/authentication.k8s.io/v1/tokenreviews", {"token": "t"})
    path, spec = asked(world, 1)
    assert path == "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
    of_user = {"user": "me", "uid": "1", "groups": ["team"], "extra": {"scope": ["a"]}}
    attributes = {"verb": "get", "resource": "pods", "namespace": "team", "name": "web"}
    assert spec == {**of_user, "resourceAttributes": attributes}
    await world.check(KNOWN, YES, query=Query("team"))
    assert asked(world, 3)[1]["resourceAttributes"] == {**attributes, "verb": "list", "name": ""}
    await world.check(KNOWN, YES)
    assert asked(world, 5)[1]["resourceAttributes"] == {**attributes, "verb": "list", "namespace": "", "name": ""}


async def test_a_right_is_asked_for_anew_after_a_minute_and_is_of_one_caller_and_one_question(world: World) -> None:
    await world.check(KNOWN, YES)
    world.now_s += FRESH_S - 1
    assert await world.check() == 0
    assert await world.check(KNOWN, YES, query=Query("team")) == 2
    assert await world.check(KNOWN, YES, token="u") == 2
    world.now_s += 1
    with pytest.raises(Forbidden, match="me may not list the pods of all namespaces"):
        await world.check(KNOWN, NO)


@pytest.mark.parametrize(
    ("answers", "error"), [((UNKNOWN,), Unauthenticated), ((KNOWN, NO), Forbidden)], ids=["unknown", "forbidden"]
)
async def test_who_was_refused_is_asked_about_again_soon_and_not_at_each_call(
    world: World, answers: tuple[bytes, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await world.check(*answers)
    before = len(world.server.asked)
    world.now_s += REFUSED_S - 1
    with pytest.raises(error):
        await world.check(KNOWN, YES)
    assert len(world.server.asked) == before
    world.now_s += 1
    assert await world.check(KNOWN, YES) == 2


async def test_while_the_api_server_is_away_who_was_let_in_stays_so_for_a_while_and_nobody_else_is(
    world: World,
) -> None:
    await world.check(KNOWN, YES)
    world.server.answers.clear()
    world.now_s += AWAY_S - 1
    assert await world.check(HANG_UP) == 1
    with pytest.raises(Unavailable):
        await world.check(HANG_UP, token="another")
    world.now_s += 1
    with pytest.raises(Unavailable):
        await world.check(HANG_UP)
    assert await world.check(KNOWN, YES) == 2


async def test_who_was_refused_before_is_not_let_in_by_an_api_server_that_is_away(world: World) -> None:
    with pytest.raises(Unauthenticated):
        await world.check(UNKNOWN)
    world.now_s += REFUSED_S
    with pytest.raises(Unavailable):
        await world.check(HANG_UP)


async def test_a_cluster_part_without_the_right_to_ask_lets_nobody_in_on_old_rights(world: World) -> None:
    await world.check(KNOWN, YES)
    world.now_s += FRESH_S
    with pytest.raises(Unavailable, match="cannot create resource"):
        await world.check(answer({"message": "cannot create resource"}, 403))


@pytest.mark.parametrize("nonsense", [{}, {"status": []}, {"status": {"authenticated": "perhaps"}}])
async def test_what_is_no_review_lets_nobody_in(world: World, nonsense: dict[str, Any]) -> None:
    with pytest.raises(Unavailable, match="what reviews a token is no API server"):
        await world.check(answer(nonsense))


async def test_of_many_callers_the_oldest_is_forgotten(world: World) -> None:
    for number in range(KNOWN_MAX + 1):
        await world.check(KNOWN, YES, token=f"t{number}")
    assert await world.check(token=f"t{KNOWN_MAX}") == 0
    assert await world.check(token="t1") == 0
    assert await world.check(KNOWN, YES, token="t0") == 2


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        (),
        (("authorization", "Basic abc"),),
        (("authorization", "Bearer "),),
        (("authorization", "Bearer a\nb"),),
        (("authorization", "Bearer ä"),),
        (("authorization", b"Bearer a"),),
        (("authorization", "Bearer a"), ("authorization", "Bearer b")),
        (("authorization", "Bearer " + "a" * 16385),),
    ],
)
def test_what_is_no_token_is_asked_nobody_about(metadata: Any) -> None:
    with pytest.raises(Unauthenticated, match="there is no token"):
        token_of(metadata)


def test_a_token_is_what_stands_behind_bearer() -> None:
    assert token_of((("user-agent", "x"), ("authorization", "bearer  a.b.c "))) == "a.b.c"
