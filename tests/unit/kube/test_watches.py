"""Watches from the event loop, against a server on a real socket that answers as the test has it. That they suit a real
API server is shown in tests/assigner."""

import asyncio
import json

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube import calls as kube_calls
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import WATCH_S
from edgeshare.kube.messages import Expired
from tests.kit.apiserver.answering_server import (
    BOUND,
    END,
    EXPIRED,
    HANG_UP,
    LARGEST,
    PODS,
    SAFETY_S,
    TOO_OLD,
    Json,
    Server,
    answer,
    change,
    chunks,
    watch,
)
from tests.kit.apiserver.watches import FIRST, NO_WATCHES, changes


async def test_a_watch_tells_each_change_until_it_ends(server: Server, calls: Calls) -> None:
    largest = change("x" * LARGEST, "9")
    text = b"".join(json.dumps(each).encode() + b"\n" for each in (change("a", "8", "ADDED"), largest))
    server.answers = [chunks(text[:20], text[20:100_000], text[100_000:]) + END]
    assert await changes(calls) == [change("a", "8", "ADDED"), largest]
    (asked,) = server.asked
    assert asked.query == {
        "watch": "1",
        "fieldSelector": BOUND,
        "resourceVersion": "7",
        "allowWatchBookmarks": "1",
        "timeoutSeconds": str(WATCH_S),
    }


async def test_a_change_is_told_in_the_call_that_brings_it_and_what_stumbles_over_it_ends_the_watch(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task is woken for a change, but for what has come with the answer's head."""
    tasks: list[asyncio.Task[None] | None] = []
    is_told = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(watch(change("a", "8")))
        for version in ("9", "10"):
            await is_told.wait()
            is_told.clear()
            writer.write(watch(change("a", version)).partition(b"\r\n\r\n")[2])
        await reader.read()
        writer.close()

    def tell(change: Json) -> None:
        tasks.append(asyncio.current_task())
        is_told.set()
        if change["object"]["metadata"]["resourceVersion"] == "10":
            raise KeyError("because")

    monkeypatch.setattr(server, "_serve", serve)
    watching = asyncio.create_task(calls.changes(PODS, BOUND, "7", tell))
    async with asyncio.timeout(SAFETY_S):
        with pytest.raises(KeyError, match="because"):
            await watching
        await server.left()
    assert tasks == [watching, None, None]


GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"


@pytest.mark.parametrize("answered", NO_WATCHES.values(), ids=NO_WATCHES)
async def test_a_watch_that_cannot_go_on_is_unavailable(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered]
    with pytest.raises(Unavailable) as raised:
        await changes(calls)
    assert type(raised.value) is Unavailable


async def test_a_watch_that_is_not_read_on_is_closed(server: Server, calls: Calls) -> None:
    server.answers = [NO_WATCHES["is an endless line"]]
    with pytest.raises(Unavailable, match="no end"):
        await changes(calls)
    await server.left()


@pytest.mark.parametrize(
    "answered",
    [
        HANG_UP,
        b"nonsense\r\n\r\n",
        answer({"message": "not yours"}, 403),
        answer({"message": "away"}, 500),
        chunks(FIRST) + b"nonsense\r\n",
        GZIP + b"Transfer-Encoding: chunked\r\n\r\n8\r\nnonsense\r\n",
    ],
    ids=["none", "no HTTP", "403", "500", "no chunk", "no gzip"],
)
async def test_what_is_no_watch_is_unavailable(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered, HANG_UP]
    with pytest.raises(Unavailable) as raised:
        await changes(calls)
    assert type(raised.value) is Unavailable


@pytest.mark.parametrize("answered", [TOO_OLD, EXPIRED], ids=["at once", "as a change"])
async def test_a_version_that_is_too_old_is_told(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered]
    with pytest.raises(Expired):
        await changes(calls)


@pytest.mark.parametrize(
    ("limit", "answers"), [("CALL_TIMEOUT_S", []), ("WATCH_S", [watch()])], ids=["no answer", "no change"]
)
async def test_a_watch_is_waited_on_for_so_long(
    server: Server, calls: Calls, monkeypatch: pytest.MonkeyPatch, limit: str, answers: list[bytes]
) -> None:
    monkeypatch.setattr(kube_calls, "CALL_TIMEOUT_S", 0.1 if limit == "CALL_TIMEOUT_S" else SAFETY_S)
    monkeypatch.setattr(kube_calls, "WATCH_S", 0.1 - SAFETY_S if limit == "WATCH_S" else SAFETY_S)
    server.answers = answers
    with pytest.raises(Unavailable, match="no answer in time"):
        await changes(calls)
    await server.left()
