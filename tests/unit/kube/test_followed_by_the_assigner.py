"""What the cluster part follows, by lists and watches in turn, whatever comes between; and what that leaves behind."""

import asyncio
import logging
import threading
from collections.abc import Callable

import pytest

from edgeshare.kube import following
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import follow
from edgeshare.kube.messages import PAGE
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
    chunks,
    name_of,
    page,
    watch,
)
from tests.kit.apiserver.watches import FIRST, NO_WATCHES


class Followed:
    """What follow tells of the pods' names."""

    def __init__(self, calls: Calls, changed: Callable[[str, str], None] | None = None) -> None:
        self.told: asyncio.Queue[tuple[str, list[str]]] = asyncio.Queue()
        changed = changed or (lambda kind, name: self.told.put_nowait((kind, [name])))
        self.task = asyncio.create_task(
            follow(calls, PODS, BOUND, name_of, lambda names: self.told.put_nowait(("LISTED", names)), changed)
        )

    async def next(self) -> tuple[str, list[str]]:
        async with asyncio.timeout(SAFETY_S):
            return await self.told.get()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task], timeout=SAFETY_S)
        assert self.task.cancelled()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many failures `follow` would have paused; it does not."""
    pauses: list[int] = []

    def pause_s(failures: int) -> float:
        pauses.append(failures)
        return 0

    monkeypatch.setattr(following, "pause_s", pause_s)
    return pauses


def versions(server: Server) -> list[str | None]:
    """From which each watch was asked for; None for a list."""
    return [each.query.get("resourceVersion") for each in server.asked]


async def test_what_is_followed_goes_on_where_a_watch_ended(server: Server, calls: Calls, pauses: list[int]) -> None:
    bookmark = change("", "9", "BOOKMARK")
    server.answers = [
        page("a", version="5"),
        watch(change("b", "6", "ADDED"), bookmark) + END,
        watch() + END,
        watch(change("c", "12", "DELETED")),
    ]
    followed = Followed(calls)
    assert [await followed.next() for _ in range(3)] == [("LISTED", ["a"]), ("ADDED", ["b"]), ("DELETED", ["c"])]
    await followed.stop()
    assert versions(server) == [None, "5", "9", "9"]
    assert server.asked[0].query == {"fieldSelector": BOUND, "limit": str(PAGE)}
    assert pauses == [0, 0]


NO_OBJECTS = {
    "is no change": chunks(FIRST, b"{}\n"),
    "is of nothing": chunks(FIRST, b'{"type": "ADDED", "object": null}\n'),
}


@pytest.mark.parametrize("answered", (NO_WATCHES | NO_OBJECTS).values(), ids=NO_WATCHES | NO_OBJECTS)
async def test_what_is_followed_goes_on_where_a_watch_broke_off(
    server: Server, calls: Calls, pauses: list[int], caplog: pytest.LogCaptureFixture, answered: bytes
) -> None:
    caplog.set_level(logging.INFO)
    server.answers = [page("a", version="5"), answered, TOO_SOON, TOO_SOON, watch(change("c", "9")) + END]
    followed = Followed(calls)
    assert [await followed.next() for _ in range(3)] == [("LISTED", ["a"]), ("MODIFIED", ["b"]), ("MODIFIED", ["c"])]
    async with asyncio.timeout(SAFETY_S):
        await server.silent.wait()
    await followed.stop()
    assert versions(server) == [None, "5", "8", "8", "8", "9"]
    assert pauses == [1, 2, 3, 0]
    said = [record.getMessage() for record in caplog.records if record.name == following.__name__]
    assert [" is not followed: " in line for line in said] == [True, True, False]
    assert said[-1] == f"{PODS} is followed again"


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([page("a", following="more"), TOO_OLD], [None, None, None]),
        ([page("a", version="5"), TOO_OLD], [None, "5", None]),
        ([page("a", version="5"), EXPIRED], [None, "5", None]),
    ],
    ids=["a page", "a watch", "a change"],
)
async def test_what_is_too_old_is_listed_anew(
    server: Server, calls: Calls, pauses: list[int], answers: list[bytes], asked: list[str | None]
) -> None:
    server.answers = [*answers, page("b", version="8"), watch(change("c", "9"))]
    followed = Followed(calls)
    listed = [("LISTED", ["a"])] * asked.count("5")
    for told in (*listed, ("LISTED", ["b"]), ("MODIFIED", ["c"])):
        assert await followed.next() == told
    await followed.stop()
    assert versions(server) == [*asked, "8"]
    assert "continue" not in server.asked[2].query
    assert pauses == [1]


@pytest.mark.parametrize(
    "answers",
    [[], [page("a", version="5")], [page("a", version="5"), watch(change("b", "6"))]],
    ids=["its list is waited for", "its watch is waited for", "nothing happens"],
)
async def test_what_is_followed_no_more_leaves_nothing_while(
    server: Server, calls: Calls, answers: list[bytes]
) -> None:
    tasks, threads = asyncio.all_tasks(), threading.enumerate()
    server.answers = list(answers)
    followed = Followed(calls)
    for _ in answers:
        await followed.next()
    if len(answers) < 2:
        async with asyncio.timeout(SAFETY_S):
            await server.silent.wait()
    await followed.stop()
    assert asyncio.all_tasks() - tasks <= server.connections
    assert threading.enumerate() == threads
    await server.left()


async def test_what_is_followed_no_more_leaves_nothing_while_much_is_told(server: Server, calls: Calls) -> None:
    tasks, told = asyncio.all_tasks(), []

    def changed(kind: str, name: str) -> None:
        told.append(name)
        followed.task.cancel()

    server.answers = [page(version="5"), watch(*(change(str(number), "6") for number in range(100)))]
    followed = Followed(calls, changed)
    await asyncio.wait([followed.task], timeout=SAFETY_S)
    assert followed.task.cancelled()
    assert told == ["0"]
    assert asyncio.all_tasks() - tasks <= server.connections
    await server.left()


async def test_what_is_followed_no_more_ends_its_pause(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing = asyncio.Event()

    def pause_s(failures: int) -> float:
        pausing.set()
        return 3600

    monkeypatch.setattr(following, "pause_s", pause_s)
    server.answers = [page(version="5"), watch() + END]
    followed = Followed(calls)
    async with asyncio.timeout(SAFETY_S):
        await pausing.wait()
    await followed.stop()
