"""What is kept at the API server: how often it is looked at, and that nobody waits for it at the end."""

import asyncio

import pytest

from deviceplugin.retry_loop import keep
from edgeshare.contract.errors import Unavailable

SAFETY_S = 30


def no_changes() -> tuple[asyncio.Event, ...]:
    return ()


class Unanswered:
    """A look that waits for an answer until it is given up."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.given_up = False

    async def look(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up = True


async def test_a_look_that_gets_no_answer_is_given_up_at_the_end() -> None:
    stop, unanswered = asyncio.Event(), Unanswered()
    keeping = asyncio.create_task(keep(unanswered.look, no_changes, "it is not written", stop))
    async with asyncio.timeout(SAFETY_S):
        await unanswered.begun.wait()
        stop.set()
        await keeping
    assert unanswered.given_up


async def test_who_is_cancelled_leaves_no_look_behind() -> None:
    unanswered = Unanswered()
    keeping = asyncio.create_task(keep(unanswered.look, no_changes, "it is not written", asyncio.Event()))
    async with asyncio.timeout(SAFETY_S):
        await unanswered.begun.wait()
        keeping.cancel()
        await asyncio.wait([keeping])
    assert unanswered.given_up
    assert keeping.cancelled()


async def test_what_cannot_be_done_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    stop, looks = asyncio.Event(), 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            stop.set()
        raise Unavailable("nobody is there")

    async with asyncio.timeout(SAFETY_S):
        await keep(look, no_changes, "it is not written", stop, pause_s=0, again_s=0)
    assert looks == 3
    assert [record.getMessage() for record in caplog.records] == ["it is not written: nobody is there"]


async def test_a_fault_of_the_look_itself_is_not_kept_quiet() -> None:
    async def look() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        await keep(look, no_changes, "it is not written", asyncio.Event())
