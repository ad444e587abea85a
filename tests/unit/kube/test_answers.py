"""What an API server answers, and what is no answer."""

import asyncio

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.messages import Conflicting, Failed, Refused
from tests.kit.apiserver.answering_server import (
    HANG_UP,
    PODS,
    SAFETY_S,
    Server,
    answer,
    chunks,
    thing,
)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, Refused),
        (409, Conflicting),
        (410, Refused),
        (429, Refused),
        (408, Failed),
        (500, Failed),
        (503, Failed),
    ],
)
async def test_what_may_have_been_done_is_told_from_what_was_not(
    server: Server, calls: Calls, status: int, kind: type[Unavailable]
) -> None:
    server.answers = [answer({"kind": "Status", "message": "because"}, status)]
    with pytest.raises(Unavailable, match=f"{status} because") as raised:
        await calls.call("POST", PODS, {})
    assert type(raised.value) is kind


async def test_what_is_there_is_answered_and_what_is_not_is_none(server: Server, calls: Calls) -> None:
    server.answers = [answer(thing("a", "1")), answer({"kind": "Status"}, 404)]
    assert await calls.call("GET", PODS) == thing("a", "1")
    assert await calls.call("GET", PODS) is None


NO_ANSWERS = {
    "none": HANG_UP,
    "no HTTP": b"nonsense\r\n\r\n",
    "no JSON": answer(b"<html>"),
    "no object": answer(b"[1]"),
    "half of one": answer(thing("a", "1"))[:-1] + HANG_UP,
    "no chunks": chunks(b"{}") + b"nonsense\r\n",
    "no gzip": answer(b"nonsense", head="Content-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize("answered", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_what_is_no_answer_of_an_api_server_is_unavailable(server: Server, calls: Calls, answered: bytes) -> None:
    server.answers = [answered, HANG_UP]
    with pytest.raises(Unavailable) as raised:
        await calls.call("GET", PODS)
    assert type(raised.value) is Unavailable


@pytest.mark.parametrize("answers", [[], [answer(b"{}")[:-1]]], ids=["none", "half of one"])
async def test_an_answer_is_waited_for_so_long(server: Server, calls: Calls, answers: list[bytes]) -> None:
    server.answers = answers
    async with asyncio.timeout(SAFETY_S):
        with pytest.raises(Unavailable, match="no answer in time"):
            await calls.call("POST", PODS, {}, timeout_s=0.1)
    await server.left()


async def test_a_server_that_is_not_there_is_unavailable(server: Server, calls: Calls) -> None:
    server.stop()
    with pytest.raises(Unavailable, match="cannot be asked"):
        await calls.call("GET", PODS)
