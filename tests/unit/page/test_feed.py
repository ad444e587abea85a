"""What those who follow are told, in which order, on a clock that stands still."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from edgeshare.contract.units import NS_PER_MS
from edgeshare.shown.feed import COMMENT, QUIET_S, Feed
from edgeshare.shown.history import STEP_NS
from edgeshare.shown.picture import Picture
from tests.kit.machine.clock import Clock

PATIENCE_S = 3.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def feed(clock: Clock, let_pass: Callable[[float], None]) -> Feed:
    return Feed(PATIENCE_S, clock, lambda: 5 * NS_PER_MS + clock())


def picture(name: str) -> Callable[[], Picture]:
    return lambda: Picture(
        nodes=[{"name": name, "fault": "", "stale": "", "devices": []}], waiting=[], notice="", nobody=""
    )


async def told(events: AsyncIterator[bytes]) -> tuple[str, Any]:
    """The next event: its kind, and what it tells."""
    kind, data, *rest = (await asyncio.wait_for(anext(events), None)).decode().split("\n")
    assert rest == ["", ""]
    return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def seen(events: AsyncIterator[bytes]) -> tuple[str, str]:
    """The next picture's name, and why it is stale."""
    kind, told_of = await told(events)
    assert kind == "picture"
    return told_of["picture"]["nodes"][0]["name"], told_of["stale"]


async def test_who_comes_gets_what_there_is_and_then_what_comes(feed: Feed) -> None:
    feed.take(picture("one"), {})
    events = feed.follow()
    assert await told(events) == ("picture", {"seenMs": 5, "stale": "", "picture": picture("one")()})
    assert (await told(events))[0] == "history"
    feed.take(picture("two"), {})
    assert await seen(events) == ("two", "")


async def test_while_nobody_follows_every_other_look_is_left_out(feed: Feed) -> None:
    feed.take(picture("one"), {})
    assert [feed.due() for _ in range(4)] == [False, True, False, True]
    events = feed.follow()
    await told(events)
    assert [feed.due() for _ in range(3)] == [True] * 3
    await events.aclose()
    assert [feed.due() for _ in range(2)] == [False, True]


async def test_who_is_slow_gets_the_newest_alone(feed: Feed) -> None:
    feed.take(picture("one"), {})
    events = feed.follow()
    await told(events)
    await told(events)
    for name in ("two", "three", "four"):
        feed.take(picture(name), {})
    assert await seen(events) == ("four", "")


async def test_what_cannot_be_seen_any_more_is_stale_with_its_reason_until_it_is_seen_again(feed: Feed) -> None:
    feed.take(picture("one"), {})
    events = feed.follow()
    await told(events)
    await told(events)
    feed.lose("nobody is there")
    assert await seen(events) == ("one", "nobody is there")
    feed.take(picture("two"), {})
    assert await seen(events) == ("two", "")


async def test_what_stays_lost_for_one_reason_is_told_once(feed: Feed, clock: Clock) -> None:
    made = []

    def make() -> Picture:
        made.append(None)
        return picture("one")()

    feed.take(make, {})
    for why in ("nobody is there", "nobody is there", "it refuses"):
        feed.lose(why)
        assert (await seen(feed.follow()))[1] == why
    assert len(made) == 2


async def test_what_does_not_answer_is_stale_after_its_patience_and_not_before(
    feed: Feed, let_pass: Callable[[float], None]
) -> None:
    feed.take(picture("one"), {})
    let_pass(0.9 * PATIENCE_S)
    feed.take(picture("two"), {})
    let_pass(0.9 * PATIENCE_S)
    # What is due is done in the loop's next round.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    events = feed.follow()
    assert await seen(events) == ("two", "")
    await told(events)
    let_pass(0.2 * PATIENCE_S)
    assert await seen(events) == ("two", "it does not answer")


async def test_the_time_that_is_told_is_of_when_it_was_seen(feed: Feed, clock: Clock) -> None:
    feed.take(picture("one"), {})
    clock.now_ns = 7 * NS_PER_MS
    feed.lose("nobody is there")
    assert (await told(feed.follow()))[1]["seenMs"] == 5


async def test_lines_are_told_when_a_step_is_over(feed: Feed, clock: Clock) -> None:
    used = {("GPU-0", "a"): 40.0}
    feed.take(picture("one"), used)
    events = feed.follow()
    await told(events)
    assert (await told(events))[1]["lines"] == {"GPU-0": {"a": []}}
    clock.now_ns = STEP_NS
    feed.take(picture("two"), used)
    await told(events)
    kind, lines = await told(events)
    assert (kind, lines["lines"], lines["stepS"]) == ("history", {"GPU-0": {"a": [40]}}, 10)


async def test_where_nothing_comes_a_comment_does(clock: Clock, let_pass: Callable[[float], None]) -> None:
    feed = Feed(10 * QUIET_S, clock, lambda: 0)
    feed.take(picture("one"), {})
    events = feed.follow()
    await told(events)
    await told(events)
    waits = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    let_pass(1.01 * QUIET_S)
    assert await waits == COMMENT


async def test_a_picture_is_made_once_for_all_who_follow_and_not_at_all_for_nobody(feed: Feed) -> None:
    made = []

    def make() -> Picture:
        made.append(None)
        return picture("one")()

    feed.take(make, {})
    feed.take(make, {})
    assert made == []
    for _ in range(3):
        await told(feed.follow())
    assert len(made) == 1


async def test_no_name_breaks_out_of_its_event(feed: Feed) -> None:
    name = "a\n\nevent: history\ndata: {}\r\n\u2028</script>"
    feed.take(picture(name), {})
    assert await seen(feed.follow()) == (name, "")
