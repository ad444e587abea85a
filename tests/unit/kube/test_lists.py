"""A list is read while it arrives, from the calling thread and from the event loop alike, and taken whole or not at
all."""

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube import list_reader
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import Kube
from edgeshare.kube.list_reader import CHUNK_BYTES, ListReader
from edgeshare.kube.messages import PAGE, Expired, Failed, Refused
from tests.kit.apiserver.answering_server import (
    BOUND,
    END,
    HANG_UP,
    LARGEST,
    PODS,
    SAFETY_S,
    TOO_OLD,
    Json,
    Server,
    answer,
    chunks,
    name_of,
    page,
    thing,
)
from tests.kit.apiserver.kubeconfig import kubeconfig

Lists = Callable[[Callable[[Json], Any]], Awaitable[tuple[list[Any], str]]]
"""Reads the list of pods, keeping of each what a function returns of it."""


@pytest.fixture(params=["thread", "event loop"])
async def lists(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> AsyncIterator[Lists]:
    reached = kubeconfig(tmp_path / "kubeconfig", {"server": server.url})
    if request.param == "thread":
        kube = Kube.from_kubeconfig(reached)
        yield lambda keep: asyncio.to_thread(kube.objects, PODS, BOUND, keep)
        return
    calls = Calls(reached)
    async with calls.open():
        yield lambda keep: calls.objects(PODS, BOUND, keep)


async def read(lists: Lists, keep: Callable[[Json], Any] = name_of) -> tuple[list[Any], str]:
    async with asyncio.timeout(SAFETY_S):
        return await lists(keep)


async def test_a_list_is_read_page_by_page(server: Server, lists: Lists) -> None:
    token = "a+b/c=&d e%20"
    server.answers = [page("a", "b", following=token), page("c", version="9")]
    assert await read(lists, lambda each: name_of(each).replace("b", "") or None) == (["a", "c"], "9")
    first = {"fieldSelector": BOUND, "limit": str(PAGE)}
    assert [each.query for each in server.asked] == [first, first | {"continue": token}]
    assert {(each.method, each.path, each.authorization) for each in server.asked} == {("GET", PODS, "Bearer a.b.c")}


ODD = {
    "kind": "PodList",
    "items": [
        {"a": None, "b": [True, [], {}], "c": {"items": [1, -2.5, 1e3]}, "d": "\u00e9\n\U0001f600"},
        {"metadata": {"resourceVersion": "8", "continue": "more"}, "items": "none"},
        {"x": "x" * LARGEST},
    ],
    "metadata": {"resourceVersion": "9"},
}


@pytest.mark.parametrize("parts", [1, 7, 100_000])
async def test_an_object_is_kept_as_it_was_sent_however_it_arrives(server: Server, lists: Lists, parts: int) -> None:
    content = json.dumps(ODD, ensure_ascii=False).encode()
    head, tail = content[:2000], content[2000:]
    sent = [head[at : at + parts] for at in range(0, len(head), parts)]
    server.answers = [chunks(*sent, tail) + END]
    assert await read(lists, lambda each: each) == (ODD["items"], "9")


@pytest.mark.parametrize("items", [[], None])
async def test_a_list_of_nothing_is_one(server: Server, lists: Lists, items: list[Json] | None) -> None:
    server.answers = [answer({"metadata": {"resourceVersion": "9"}, "items": items})]
    assert await read(lists) == ([], "9")


AWAY = answer({"message": "away"}, 500)
ITEMS = b'{"metadata": {"resourceVersion": "5"}, "items": [' + json.dumps(thing("a", "1")).encode()
NO_LISTS = {
    "none": (HANG_UP, "cannot be asked"),
    "no JSON": (answer(b"<html>"), "is no list"),
    "nothing": (answer(b""), "is no list"),
    "a list alone": (answer(b"[]"), "no metadata|no items"),
    "no items": (answer({"metadata": {"resourceVersion": "5"}}), "no items"),
    "no metadata": (answer({"items": []}), "no metadata"),
    "items that are text": (answer({"metadata": {}, "items": "a"}), "no items"),
    "items that are an object": (answer({"metadata": {}, "items": {"item": thing("a", "1")}}), "no items"),
    "an item that is text": (chunks(ITEMS + b', "b"]}') + END, "a str where an object is expected"),
    "an item that is nothing": (chunks(ITEMS + b", null]}") + END, "a NoneType where an object is expected"),
    "half of one": (answer(ITEMS + b"]}")[:-1] + HANG_UP, "cannot be asked"),
    "half of one, in chunks": (chunks(ITEMS) + HANG_UP, "cannot be asked"),
    "cut off between objects": (chunks(ITEMS + b",") + END, "breaks off"),
    "cut off in an object": (chunks(ITEMS + b', {"metadata": {"na') + END, "breaks off"),
    "more than one": (chunks(ITEMS + b"]}", b"{}") + END, "is no list"),
    "no UTF-8": (chunks(ITEMS, b', {"a": "\xff"}]}') + END, "is no list"),
    "no chunks": (chunks(ITEMS) + b"nonsense\r\n" + HANG_UP, "cannot be asked"),
    "404": (answer({"kind": "Status"}, 404), "nothing at"),
    "500": (AWAY, "500 away"),
}


@pytest.mark.parametrize(("answered", "why"), NO_LISTS.values(), ids=NO_LISTS)
async def test_what_is_no_list_is_taken_not_at_all_and_said_in_a_line(
    server: Server, lists: Lists, answered: bytes, why: str
) -> None:
    server.answers = [page("before", following="more"), answered, HANG_UP]
    with pytest.raises(Unavailable, match=why) as raised:
        await read(lists)
    assert type(raised.value) is (Failed if answered is AWAY else Unavailable)
    assert PODS in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_a_list_that_expired_while_it_was_read_is_told_from_one_that_is_refused(
    server: Server, lists: Lists
) -> None:
    server.answers = [page("a", following="more"), TOO_OLD, answer({"message": "not yours"}, 403)]
    with pytest.raises(Expired, match="while it was read"):
        await read(lists)
    with pytest.raises(Refused, match="403 not yours"):
        await read(lists)


async def test_what_its_keeper_stumbles_over_is_raised_as_it_is(server: Server, lists: Lists) -> None:
    server.answers = [answer({"metadata": {}, "items": [{}]}), page("a", version="5")]
    with pytest.raises(KeyError):
        await read(lists)
    assert await read(lists) == (["a"], "5")


@pytest.mark.parametrize("one_page", [True, False], ids=["objects", "pages"])
async def test_a_list_that_grows_without_an_end_is_given_up(
    server: Server, lists: Lists, monkeypatch: pytest.MonkeyPatch, one_page: bool
) -> None:
    monkeypatch.setattr(list_reader, "OBJECTS_MAX", 100)
    endless = [page(*map(str, range(101)))] if one_page else [page(following=str(number)) for number in range(1000)]
    server.answers = [*endless, HANG_UP]
    with pytest.raises(Unavailable, match="has no end: more than 100"):
        await read(lists)


@pytest.mark.parametrize("begin", [b" ", ITEMS + b', {"x": "', ITEMS + b"]}"], ids=["none", "an object", "its end"])
async def test_an_object_that_grows_without_an_end_is_given_up(
    server: Server, lists: Lists, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    monkeypatch.setattr(list_reader, "OBJECT_BYTES_MAX", 4 * CHUNK_BYTES)
    server.answers = [chunks(begin, b" " * 100 * CHUNK_BYTES)]
    with pytest.raises(Unavailable, match="has no end"):
        await read(lists)
    await server.left()


def test_a_list_takes_as_much_memory_as_what_is_kept_of_it() -> None:
    large = json.dumps(thing("a", "1") | {"status": ["x" * 100] * 100}).encode()
    reader: ListReader[str] = ListReader(PODS, name_of)
    tracemalloc.start()
    try:
        with reader.page() as take:
            take(b'{"metadata": {}, "items": [')
            for _ in range(1000):
                take(large + b",")
            take(large + b"]}")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.kept == ["a"] * 1001
    assert peak_bytes < 20 * len(large)
