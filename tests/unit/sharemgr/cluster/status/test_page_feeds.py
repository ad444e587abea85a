"""What the cluster's page shows, and of whom: pods that wait as a watch tells of them, and who is looked at while
somebody follows; on a clock that stands still."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.shown.feed import CLUSTER_LOOK_S
from edgeshare.shown.waiting_pods import Waiting
from edgeshare.v1.cluster_pb2 import ClusterState, NodeState
from sharemgr.cluster.status.page_feeds import UNLISTED, PageFeeds, WaitingPods
from sharemgr.cluster.status.query import Query
from tests.kit.machine.clock import Clock

ALL = Query()
TEAM = Query("team")


def pod(namespace: str, name: str, why: str = "") -> Waiting:
    return Waiting(namespace=namespace, pod=name, asks={"edge/gpu-percent": 60}, why=why)


class World:
    """A cluster of one node, which tells when it is asked."""

    def __init__(self, let_pass: Callable[[float], None]) -> None:
        self.let_pass = let_pass
        self.asked: list[Query] = []
        self.away = ""
        """Why nothing is told; empty: it is."""
        self.waiting = WaitingPods()
        self.feeds = PageFeeds(self.tell, self.waiting, Clock(), Clock())

    async def tell(self, query: Query) -> ClusterState:
        self.asked.append(query)
        if self.away:
            raise Unavailable(self.away)
        return ClusterState(nodes=[NodeState(node="n1")])

    async def looks(self) -> list[Query]:
        """Whom the next look that is due asks about, if any, after the time between two."""
        before = len(self.asked)
        self.let_pass(CLUSTER_LOOK_S)
        await quiet()
        return self.asked[before:]

    @asynccontextmanager
    async def follower(self, query: Query) -> AsyncIterator[AsyncIterator[bytes]]:
        with self.feeds.followed(query) as feed:
            async with aclosing(feed.follow()) as parts:
                yield parts


async def quiet() -> None:
    """All that can go on now has."""
    for _ in range(50):
        await asyncio.sleep(0)


async def shown(parts: AsyncIterator[bytes]) -> dict[str, Any]:
    """What the next picture tells."""
    async for part in parts:
        kind, data = part.decode().split("\n")[:2]
        if kind == "event: picture":
            return dict(json.loads(data.removeprefix("data: ")))
    raise AssertionError("no more is told")


@pytest.fixture
async def world(let_pass: Callable[[float], None]) -> AsyncIterator[World]:
    world = World(let_pass)
    running = asyncio.create_task(world.feeds.run())
    await quiet()
    yield world
    running.cancel()


def test_pods_that_wait_are_known_once_listed_and_follow_what_is_told() -> None:
    waiting = WaitingPods()
    assert waiting.of("") == ([], UNLISTED)
    waiting.listed([pod("team", "b"), pod("other", "a")])
    assert waiting.of("") == ([pod("other", "a"), pod("team", "b")], "")
    waiting.told("MODIFIED", pod("team", "b", "no room"))
    waiting.told("ADDED", pod("team", "c"))
    assert waiting.of("team") == ([pod("team", "b", "no room"), pod("team", "c")], "")
    waiting.told("DELETED", pod("team", "b"))
    assert [each.pod for each in waiting.of("team")[0]] == ["c"]


async def test_all_are_looked_at_always_and_half_as_often_while_nobody_follows(world: World) -> None:
    assert world.asked == [ALL]
    assert [await world.looks() for _ in range(4)] == [[], [ALL], [], [ALL]]
    async with world.follower(ALL) as parts:
        await shown(parts)
        assert [await world.looks() for _ in range(3)] == [[ALL]] * 3


async def test_a_namespace_is_looked_at_at_once_when_it_is_followed_and_no_more_when_it_is_not(world: World) -> None:
    async with world.follower(TEAM) as parts:
        told = asyncio.create_task(shown(parts))
        await quiet()
        assert world.asked[-1] == TEAM
        assert [each["name"] for each in (await told)["picture"]["nodes"]] == ["n1"]
        async with world.follower(TEAM) as others:
            # What one sees, the other is told without another look.
            before = len(world.asked)
            await shown(others)
            assert len(world.asked) == before
        assert TEAM in await world.looks()
    assert TEAM not in [*await world.looks(), *await world.looks()]


async def test_who_waits_is_of_that_namespace(world: World) -> None:
    world.waiting.listed([pod("team", "b"), pod("other", "a")])
    for query, names in ((TEAM, ["team/b"]), (ALL, ["other/a", "team/b"])):
        async with world.follower(query) as parts:
            told = asyncio.create_task(shown(parts))
            await world.looks()
            await told
            await world.looks()
            picture = (await shown(parts))["picture"]
            assert [each["who"] for each in picture["waiting"]] == names


async def test_what_cannot_be_told_is_stale_with_the_reason_until_it_is_told_again(world: World) -> None:
    world.away = "nobody is there"
    async with world.follower(TEAM) as parts:
        told = asyncio.create_task(shown(parts))
        await quiet()
        # Nothing was seen of it yet.
        assert ((await told)["stale"], (await told)["picture"]) == ("nobody is there", None)
        world.away = ""
        await world.looks()
        seen = await shown(parts)
        assert (seen["stale"], len(seen["picture"]["nodes"])) == ("", 1)
        world.away = "nobody is there"
        await world.looks()
        stale = await shown(parts)
        assert (stale["stale"], stale["picture"]) == ("nobody is there", seen["picture"])
