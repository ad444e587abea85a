"""HTTP/2, spoken by a client that can also misbehave, over real TLS connections."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
from h2.settings import SettingCodes
from hyperframe.frame import (
    GoAwayFrame,
    PingFrame,
)

from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.server import http2
from sharemgr.cluster.server.bodies import Bodies
from sharemgr.cluster.server.frames import SPARE_MAX, SPARE_PER_ANSWER
from sharemgr.cluster.server.serving import BODY_BYTES_MAX
from tests.kit.apiserver.certificates import Authority
from tests.kit.assigner.http2_client import PREFACE, SAFETY_S, Running, Verbs


async def test_what_a_verb_returns_is_sent_as_json(running: Running) -> None:
    async with running.client() as client:
        assert await client.ask("/filter?timeout=1s", b'{"a": ["\xc3\xa9", 1]}') == (200, '{"a":["é",1]}')
        assert client.headers[1][b"content-type"] == b"application/json"


async def test_requests_go_on_at_a_time_over_one_connection_and_are_answered_in_any_order(
    running: Running, verbs: Verbs
) -> None:
    async with running.client() as client:
        binds = [await client.send("/bind", str(number).encode()) for number in range(50)]
        assert await client.ask("/filter") == (200, "1")
        assert verbs.waiting == 50
        assert client.ended == [101]
        verbs.go_on.set()
        assert [await client.answer(number) for number in binds] == [(200, f'"{number}"') for number in range(50)]


async def test_a_body_has_a_limit(running: Running, verbs: Verbs) -> None:
    most = b"x" * BODY_BYTES_MAX
    async with running.client() as client:
        assert await client.ask("/prioritize", most) == (200, str(BODY_BYTES_MAX))
        assert await client.ask("/prioritize", most + b"x") == (413, f"a request has at most {BODY_BYTES_MAX} bytes\n")
        assert verbs.calls == 1
        assert await client.ask("/filter") == (200, "1")


async def test_the_rest_of_a_body_that_is_too_long_is_not_waited_for(running: Running) -> None:
    async with running.client() as client:
        number = await client.send("/filter", b"x" * (BODY_BYTES_MAX + 1), is_whole=False)
        assert (await client.answer(number))[0] == 413
        await client.until(lambda: number in client.reset)
        assert await client.ask("/filter") == (200, "1")


@pytest.mark.parametrize("is_whole", [True, False])
async def test_what_bodies_took_of_the_window_is_given_back(running: Running, verbs: Verbs, is_whole: bool) -> None:
    body = b"x" * (BODY_BYTES_MAX - 1)
    async with running.client() as client:
        for _ in range(2 * http2.WINDOW_BYTES // len(body)):
            number = await client.send("/prioritize", body, is_whole=is_whole)
            if is_whole:
                assert await client.answer(number) == (200, str(len(body)))
            else:
                client.http.reset_stream(number)
        assert await client.ask("/filter") == (200, "1")
    assert is_whole or verbs.calls == 1


async def test_an_answer_comes_as_the_client_gives_room(running: Running) -> None:
    text = json.dumps("x" * 500)
    async with running.client(window=100) as client:
        client.gives_window = False
        number = await client.send("/filter", text.encode())
        for room in (100, 250):
            await client.until(lambda room=room: len(client.texts.get(number, b"")) >= room)
            # Another's room is its own, and what it gets comes after all that there was room for.
            assert await client.ask("/filter") == (200, "1")
            assert len(client.texts[number]) == room
            client.http.increment_flow_control_window(150, number)
            await client.flush()
        # For every request.
        client.http.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1000})
        await client.flush()
        assert await client.answer(number) == (200, text)


@pytest.mark.parametrize(("path", "method", "status"), [("/", "POST", 404), ("/x", "GET", 404), ("/bind", "GET", 405)])
async def test_there_is_nothing_but_verbs_to_be_posted(running: Running, path: str, method: str, status: int) -> None:
    async with running.client() as client:
        assert (await client.ask(path, method=method))[0] == status


async def test_a_request_that_is_given_up_goes_on_to_its_end_and_harms_nobody(running: Running, verbs: Verbs) -> None:
    async with running.client() as client:
        given_up, other = await client.send("/bind"), await client.send("/bind", b"2")
        assert await client.ask("/filter") == (200, "1")
        client.http.reset_stream(given_up)
        assert await client.ask("/filter") == (200, "1")
        verbs.go_on.set()
        assert await client.answer(other) == (200, '"2"')
        assert verbs.waiting == 2
        assert given_up not in client.headers


async def test_changed_certificates_end_a_connection_when_all_that_was_sent_on_it_is_answered(
    running: Running, verbs: Verbs
) -> None:
    async with running.client() as client, running.client() as idle:
        before = await client.send("/bind")
        assert (await client.ask("/filter"), await idle.ask("/filter")) == ((200, "1"), (200, "1"))
        assert client.server_name == "edgeshare"
        await running.server.use(running.context("edgeshare-new"))
        # The clients do not know yet.
        late, of_idle = await client.send("/bind", b"2"), await idle.send("/filter")
        assert await idle.answer(of_idle) == (200, "1")
        await idle.until_end()
        await client.until(lambda: client.last_stream_ids)
        async with running.client() as other:
            assert await other.ask("/filter") == (200, "1")
            assert other.server_name == "edgeshare-new"
        verbs.go_on.set()
        assert (await client.answer(before), await client.answer(late)) == ((200, '"1"'), (200, '"2"'))
        await client.until_end()
    assert client.last_stream_ids == [2**31 - 1, late]


async def test_who_leads_no_more_sends_its_clients_away_when_all_is_answered(running: Running, verbs: Verbs) -> None:
    def refuse(body: bytes) -> object:
        raise Unavailable("another replica leads")

    async with running.client() as client:
        bind = await client.send("/bind")
        verbs.by_name["filter"] = refuse
        assert await client.ask("/filter") == (503, "another replica leads\n")
        await client.until(lambda: client.last_stream_ids)
        verbs.go_on.set()
        assert await client.answer(bind) == (200, '"1"')
        await client.until_end()


async def test_what_is_being_answered_at_the_end_is_answered(authority: Authority, verbs: Verbs) -> None:
    running = Running(authority, verbs)
    async with AsyncExitStack() as stack:
        running.url = await stack.enter_async_context(running.server.running(running.context("edgeshare")))
        async with running.client() as client:
            number = await client.send("/bind")
            assert await client.ask("/filter") == (200, "1")
            ending = asyncio.create_task(stack.pop_all().aclose())
            await client.until(lambda: client.last_stream_ids)
            verbs.go_on.set()
            assert await client.answer(number) == (200, '"1"')
            await client.until_end()
        await ending


async def test_who_asks_may_send_frames_that_ask_for_nothing_all_the_time(running: Running) -> None:
    ping = PingFrame(opaque_data=bytes(8)).serialize()
    async with running.client() as client:
        for _ in range(1 + SPARE_MAX // SPARE_PER_ANSWER):
            client.writer.write(ping * SPARE_PER_ANSWER)
            assert await client.ask("/filter") == (200, "1")


async def test_connections_that_end_are_not_in_the_way_of_new_certificates(running: Running) -> None:
    async with running.client() as other, running.connection() as client:
        # What TLS says at a connection's end is not answered.
        client.writer.transport.pause_reading()
        client.writer.write(PREFACE + GoAwayFrame().serialize())
        assert await other.ask("/filter") == (200, "1")
        assert len(running.server._connections) == 2
        await running.server.use(running.context("edgeshare-new"))
        await other.until_end()


async def test_requests_that_are_given_up_are_not_answered_without_bound(running: Running, verbs: Verbs) -> None:
    async with running.client() as client:
        for _ in range(http2.ANSWERS_MAX + 100):
            client.http.reset_stream(await client.send("/bind", b""))
        refused = await client.send("/filter")
        await client.until(lambda: refused in client.reset)
        assert verbs.waiting == http2.ANSWERS_MAX
        assert not verbs.calls
        verbs.go_on.set()
        await asyncio.wait_for(verbs.done.wait(), SAFETY_S)
        assert await client.ask("/filter") == (200, "1")


async def test_bodies_of_many_connections_are_bounded_together_and_another_is_answered(
    running: Running, verbs: Verbs
) -> None:
    """Those that came first are refused, and may be sent anew; nothing is kept of who left."""
    running.server.bodies = bodies = Bodies(BODY_BYTES_MAX)
    part = b"x" * (BODY_BYTES_MAX // 8)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(running.client()) for _ in range(20)]
        numbers = [await client.send("/prioritize", part, is_whole=False) for client in clients]
        for client, number in zip(clients[:12], numbers[:12], strict=True):
            await client.until(lambda number=number, client=client: number in client.reset)  # type: ignore[misc]
        assert bodies.bytes <= BODY_BYTES_MAX
        assert await clients[0].ask("/prioritize", part) == (200, str(len(part)))
        clients[-1].http.end_stream(numbers[-1])
        await clients[-1].flush()
        assert await clients[-1].answer(numbers[-1]) == (200, str(len(part)))
        # What is being answered counts, too.
        waits = [await clients[1].send("/bind", part) for _ in range(4)]
        await clients[1].ask("/filter")
        assert verbs.waiting == 4
        assert bodies.bytes >= 4 * len(part)
        verbs.go_on.set()
        assert [(await clients[1].answer(number))[0] for number in waits] == [200] * 4
        assert not any(client.error_codes for client in clients)
    while bodies.bytes:  # noqa: ASYNC110 (nobody else is told of it)
        # Their ends come one after the other, and the tasks' before that.
        await asyncio.sleep(0)
