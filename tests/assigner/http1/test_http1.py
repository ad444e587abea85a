"""HTTP/1.1: what is asked, in whatever pieces it comes, is answered in turn."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.server.http1 import WAITING_MAX
from tests.kit.assigner.asker import Running


async def test_what_comes_in_any_pieces_is_answered(running: Running) -> None:
    request = b"POST /filter HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"
    async with running.client() as client:
        for size in (1, 7, len(request)):
            for start in range(0, len(request), size):
                client.writer.write(request[start : start + size])
                await asyncio.sleep(0)
            assert (await client.answer())[::2] == (200, "[1]")


async def test_requests_that_come_together_are_answered_in_turn(running: Running) -> None:
    async with running.client() as client:
        client.send("/bind")
        for number in range(1, WAITING_MAX):
            client.send("/filter", str(number).encode())
        await running.began.wait()
        running.go_on.set()
        assert [(await client.answer())[2] for _ in range(WAITING_MAX)] == ['"1"', *map(str, range(1, WAITING_MAX))]


async def test_a_client_that_asks_whether_to_send_its_body_is_told_to(running: Running) -> None:
    async with running.client() as client:
        client.writer.write(b"POST /filter HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        assert (await client.answer())[0] == 100
        client.writer.write(b"1")
        assert (await client.answer())[::2] == (200, "1")


async def test_who_asks_for_the_head_alone_gets_no_body(running: Running) -> None:
    async with running.client() as client:
        client.send("/filter", b"", method="HEAD")
        assert (await client.answer(has_body=False))[0] == 405
        assert await client.ask("/filter") == (200, "1")


@pytest.mark.parametrize(("version", "header"), [("1.0", "X: x"), ("1.1", "Connection: close")])
async def test_a_client_that_wants_one_answer_gets_the_end_with_it(running: Running, version: str, header: str) -> None:
    async with running.client() as client:
        client.writer.write(f"POST /filter HTTP/{version}\r\n{header}\r\nContent-Length: 1\r\n\r\n1".encode())
        status, headers, text = await client.answer()
        assert (status, headers["connection"], text) == (200, "close", "1")
        assert await client.ends() == b""


async def test_after_certificates_changed_each_connection_has_one_more_answer(running: Running) -> None:
    async with running.client() as client, running.client() as busy:
        assert await client.ask("/filter") == (200, "1")
        busy.send("/bind")
        await running.began.wait()
        await running.server.use(None)
        running.go_on.set()
        for each in (client, busy):
            if each is client:
                each.send("/filter")
            status, headers, _ = await each.answer()
            assert (status, headers["connection"]) == (200, "close")
            assert await each.ends() == b""


async def test_who_leads_no_more_answers_what_came_first_and_sends_its_client_away(running: Running) -> None:
    def refuse(body: bytes) -> object:
        raise Unavailable("another replica leads")

    async with running.client() as client:
        running.verbs["filter"] = refuse
        for path in ("/bind", "/filter", "/bind"):
            client.send(path)
        running.go_on.set()
        assert [(await client.answer())[0] for _ in range(2)] == [200, 503]
        assert await client.ends() == b""
    assert running.waited == 1


async def test_a_request_whose_client_has_left_goes_on_to_its_end(running: Running) -> None:
    async with running.client() as client:
        client.send("/bind")
        client.send("/filter")
        await running.began.wait()
    async with running.client() as other:
        assert await other.ask("/filter") == (200, "1")
        running.go_on.set()
        assert await other.ask("/filter") == (200, "1")
    assert running.waited == 1
    assert not running.server.bodies.bytes


async def test_what_is_asked_at_the_end_is_answered_and_who_is_idle_is_sent_away() -> None:
    running = Running()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(running.server.running(None))
        running.port = int(url.rpartition(":")[2])
        async with running.client() as client, running.client() as idle:
            assert await idle.ask("/filter") == (200, "1")
            client.send("/bind")
            await running.began.wait()
            ending = asyncio.create_task(stack.pop_all().aclose())
            assert await idle.ends() == b""
            running.go_on.set()
            assert (await client.answer())[::2] == (200, '"1"')
            assert await client.ends() == b""
        await ending


async def test_a_verb_that_waits_for_nothing_is_answered_without_a_task_between_those_that_wait(
    running: Running,
) -> None:
    tasks = []

    def at_once(body: bytes) -> object:
        tasks.append(asyncio.current_task())
        return len(tasks)

    running.verbs["prioritize"] = at_once
    async with running.client() as client:
        assert await client.ask("/prioritize") == (200, "1")
        for path in ("/prioritize", "/bind", "/prioritize"):
            client.send(path)
        await running.began.wait()
        assert len(tasks) == 2
        running.go_on.set()
        assert [(await client.answer())[2] for _ in range(3)] == ["2", '"1"', "3"]
    assert tasks == [None, None, None]
