"""When what a node follows is listed anew: not with all other nodes in one moment, and at once where somebody waits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgeshare.kube import following
from edgeshare.kube.following import PUT_OFF_S, PutOff, follow
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import InThreads
from edgeshare.waiting import ended, first_of
from tests.kit.apiserver.answering_server import (
    BOUND,
    END,
    EXPIRED,
    PODS,
    SAFETY_S,
    TOO_OLD,
    TOO_SOON,
    Server,
    change,
    name_of,
    page,
    watch,
)
from tests.kit.apiserver.kubeconfig import kubeconfig

CHANCE = 0.7


class Followed:
    """What is told of the pods' names, and how it is waited: not at all, until somebody waits for that."""

    def __init__(self, kube: Kube, server: Server) -> None:
        self.told: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()
        self.waits: list[tuple[int, float]] = []
        """After how many requests, and how many seconds it would have been."""
        self.waits_on = ""
        """One in seconds, which it is in until its event is set."""
        self.is_waiting = asyncio.Event()
        self.waited_on = asyncio.Event()
        self.put_off = PutOff(uniform=lambda low, high: low + CHANCE * (high - low))
        self._kube = kube
        self._server = server
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        lister, put_off = InThreads(self._kube), self.put_off
        self.task = asyncio.create_task(
            follow(lister, PODS, BOUND, name_of, self._listed, self._changed, put_off=put_off)
        )

    def _listed(self, names: list[str]) -> None:
        self.told.put_nowait(("LISTED", names))

    def _changed(self, kind: str, name: str) -> None:
        self.told.put_nowait((kind, [name]))

    async def pause(self, seconds: float, *over: asyncio.Event) -> None:
        self.waits.append((len(self._server.asked), seconds))
        if str(seconds) == self.waits_on:
            (self.waited_on,) = over
            self.is_waiting.set()
            await first_of(self.waited_on, timeout_s=SAFETY_S)

    async def next(self) -> tuple[str, list[str]]:
        async with asyncio.timeout(SAFETY_S):
            return await self.told.get()


@pytest.fixture
async def followed(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Followed]:
    followed = Followed(Kube.from_kubeconfig(kubeconfig(tmp_path / "kubeconfig", {"server": server.url})), server)
    monkeypatch.setattr(following, "pause_s", float)
    monkeypatch.setattr(following, "pause", followed.pause)
    yield followed
    if followed.task is not None:
        await ended(followed.task)


PUT_OFF = CHANCE * PUT_OFF_S


@pytest.mark.parametrize("lost", [TOO_OLD, EXPIRED], ids=["at once", "as a change"])
async def test_what_was_lost_is_listed_anew_at_a_moment_by_chance(
    server: Server, followed: Followed, lost: bytes
) -> None:
    server.answers = [page("a", version="5"), lost, page("b", version="8"), watch(change("c", "9"))]
    followed.start()
    assert [await followed.next() for _ in range(3)] == [("LISTED", ["a"]), ("LISTED", ["b"]), ("MODIFIED", ["c"])]
    assert followed.waits == [(2, PUT_OFF)]
    assert PUT_OFF_S <= 10


async def test_a_list_anew_that_is_refused_is_asked_for_as_others_are(server: Server, followed: Followed) -> None:
    server.answers = [page("a", version="5"), TOO_OLD, TOO_SOON, TOO_SOON, page("b", version="8"), watch()]
    followed.start()
    assert [await followed.next() for _ in range(2)] == [("LISTED", ["a"]), ("LISTED", ["b"])]
    assert followed.waits == [(2, PUT_OFF), (3, 2), (4, 3)]


async def test_one_that_is_lost_again_and_again_is_asked_for_ever_less_often(
    server: Server, followed: Followed
) -> None:
    lost_at_once = [page("a", version="5"), TOO_OLD]
    server.answers = [*lost_at_once * 9, page("b", version="8"), watch()]
    followed.start()
    assert [await followed.next() for _ in range(10)][-1] == ("LISTED", ["b"])
    assert [seconds for _, seconds in followed.waits] == [*[PUT_OFF] * 7, 8, 9]


@pytest.mark.parametrize(
    ("answers", "waits"),
    [
        ([TOO_SOON], [(1, 1)]),
        ([page("x", following="more"), TOO_OLD], [(2, 1)]),
    ],
    ids=["refused", "expired while it is read"],
)
async def test_the_first_list_is_not_put_off(
    server: Server, followed: Followed, answers: list[bytes], waits: list[tuple[int, float]]
) -> None:
    server.answers = [*answers, page("a", version="5"), watch(change("b", "6"))]
    followed.start()
    assert [await followed.next() for _ in range(2)] == [("LISTED", ["a"]), ("MODIFIED", ["b"])]
    assert followed.waits == waits


async def test_a_watch_that_can_go_on_is_not_put_off(server: Server, followed: Followed) -> None:
    server.answers = [page("a", version="5"), watch() + END, TOO_SOON, watch(change("b", "6"))]
    followed.start()
    assert [await followed.next() for _ in range(2)] == [("LISTED", ["a"]), ("MODIFIED", ["b"])]
    assert followed.waits == [(2, 0), (3, 1)]


async def test_who_waits_for_it_has_it_listed_at_once(server: Server, followed: Followed) -> None:
    followed.waits_on = str(PUT_OFF)
    server.answers = [page("a", version="5"), TOO_OLD, page("b", version="8"), watch(change("c", "9"))]
    followed.start()
    assert await followed.next() == ("LISTED", ["a"])
    async with asyncio.timeout(SAFETY_S):
        await followed.is_waiting.wait()
    assert followed.put_off.hurry()
    # Until it is told, it is still to come.
    assert followed.put_off.hurry()
    assert [await followed.next() for _ in range(2)] == [("LISTED", ["b"]), ("MODIFIED", ["c"])]
    assert not followed.put_off.hurry()


async def test_who_hurried_before_it_was_lost_does_not_hurry_it(server: Server, followed: Followed) -> None:
    followed.waits_on = str(PUT_OFF)
    assert not followed.put_off.hurry()
    server.answers = [page("a", version="5"), TOO_OLD]
    followed.start()
    assert await followed.next() == ("LISTED", ["a"])
    async with asyncio.timeout(SAFETY_S):
        await followed.is_waiting.wait()
    assert not followed.waited_on.is_set()


async def test_what_is_followed_no_more_is_put_off_no_longer(server: Server, followed: Followed) -> None:
    followed.waits_on = str(PUT_OFF)
    server.answers = [page("a", version="5"), TOO_OLD]
    followed.start()
    async with asyncio.timeout(SAFETY_S):
        await followed.is_waiting.wait()
    assert followed.task is not None
    await ended(followed.task)
    assert followed.task.cancelled()
    assert len(server.asked) == 2
