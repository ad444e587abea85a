"""HTTP/1.1, spoken by clients that misbehave: what they cost is bounded, and others are answered beside them."""

import asyncio
import json
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharemgr.cluster.server import serving
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.http1 import BESIDE_BODY_BYTES_MAX, WAITING_MAX
from sharemgr.cluster.server.serving import BODY_BYTES_MAX
from tests.kit.assigner.asker import SAFETY_S, Running
from tests.kit.properties.examples import examples

READ_BYTES_MAX = 256 * 1024
"""What asyncio reads at a time."""


async def test_who_does_not_wait_for_answers_is_ended_and_nothing_of_it_is_kept(running: Running) -> None:
    async with running.client() as client, running.client() as other:
        client.send("/bind")
        await running.began.wait()
        for _ in range(WAITING_MAX + 1):
            client.send("/filter")
        assert await client.ends() == b""
        running.go_on.set()
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    assert not running.server.bodies.bytes


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "no HTTP/1.1", id="TLS"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "no HTTP/1.1", id="HTTP/2"),
        pytest.param(b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "no HTTP/1.1", id="a length below 0"),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n",
            "no HTTP/1.1",
            id="two lengths",
        ),
        pytest.param(
            b"POST /bind HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\n1",
            "another protocol is asked for",
            id="an upgrade",
        ),
    ],
)
async def test_what_is_no_http1_is_refused_and_ends_its_connection(running: Running, said: bytes, why: str) -> None:
    async with running.client() as client, running.client() as other:
        client.writer.write(said)
        status, headers, text = await client.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert why in text
        assert await client.ends() == b""
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    assert not running.began.is_set()


HEAD = b"POST /filter HTTP/1.1\r\nHost: a\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
SIZE = READ_BYTES_MAX + BESIDE_BODY_BYTES_MAX


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"POST /" + b"x" * SIZE, id="a path"),
        pytest.param(HEAD + b"X: " + b"x" * SIZE, id="a header"),
        pytest.param(HEAD + b"X: x\r\n" * (SIZE // 6), id="headers"),
        pytest.param(CHUNKED + b"1\r\n1\r\n" * (SIZE // 6), id="crumbs of a body"),
        pytest.param(CHUNKED + b"1;" + b"x" * SIZE, id="what is said of a body's piece"),
        pytest.param(CHUNKED + b"0\r\nX: " + b"x" * SIZE, id="what follows a body"),
    ],
)
async def test_what_is_beside_a_body_is_bounded(
    running: Running, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running.client() as client, running.client() as other:
        client.writer.write(said)
        with suppress(ConnectionError):
            # It is told why, unless it was still sending at the end.
            await client.ends()
        assert await other.ask("/filter") == (200, "1")
    assert running.ended == {Ending.PROTOCOL: 1}
    (message,) = caplog.messages
    assert f"more than {BESIDE_BODY_BYTES_MAX} bytes beside its body" in message
    assert not running.server.bodies.bytes


async def test_a_body_that_is_too_long_is_told_so_while_it_comes_and_not_read_without_end(running: Running) -> None:
    async with running.client() as client:
        client.writer.write(b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        client.writer.write(piece * (BODY_BYTES_MAX // 65536 + 1))
        status, headers, _ = await client.answer()
        assert (status, headers["connection"]) == (413, "close")
        assert not running.server.bodies.bytes
        with suppress(ConnectionError):
            while True:
                client.writer.write(piece)
                await client.writer.drain()
    assert running.ended == {Ending.PROTOCOL: 1}


async def test_a_client_that_says_nothing_is_sent_away_and_not_while_it_waits(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a client to have said something, also where the machine does something else for a moment.
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    async with running.client() as mute, running.client() as slow, running.client() as waiting:
        waiting.send("/bind")
        slow.writer.write(HEAD)
        assert await mute.ends() == b""
        assert await slow.ends() == b""
        running.go_on.set()
        assert (await waiting.answer())[::2] == (200, '"1"')
        assert await waiting.ends() == b""


async def test_a_client_that_does_not_read_is_not_read_from(running: Running) -> None:
    text = json.dumps("x" * 100_000)
    async with running.client() as client:
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._connections
        client.transport.pause_reading()
        asked = 0
        while connection._transport.is_reading():
            assert asked < 400, "it is read from without end"
            if not client.writer.transport.get_write_buffer_size():
                client.send("/filter", text.encode())
                asked += 1
            await asyncio.sleep(0)
        async with running.client() as other:
            assert await other.ask("/filter") == (200, "1")
        client.transport.resume_reading()
        for _ in range(asked):
            assert (await client.answer())[::2] == (200, text)


async def test_what_a_client_does_not_read_keeps_its_next_requests_waiting(running: Running) -> None:
    asked = []

    def much(body: bytes) -> object:
        asked.append(body)
        return "x" * 4_000_000

    running.verbs["prioritize"] = much
    async with running.client() as client, running.client() as other:
        client.transport.pause_reading()
        for _ in range(WAITING_MAX - 1):
            client.send("/prioritize")
        for _ in range(2 * WAITING_MAX):
            assert await other.ask("/filter") == (200, "1")
        assert 0 < len(asked) < WAITING_MAX - 1
        client.transport.resume_reading()
        for _ in range(WAITING_MAX - 1):
            assert (await client.answer())[0] == 200


async def test_one_that_does_not_read_and_says_nothing_is_sent_away(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    async with running.client() as client:
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._connections
        client.transport.pause_reading()
        for _ in range(WAITING_MAX - 1):
            client.send("/filter", json.dumps("x" * 1_000_000).encode())
        await asyncio.wait_for(connection.over.wait(), SAFETY_S)
        assert not running.server._connections
    assert not running.server.bodies.bytes


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(
            [HEAD, CHUNKED, b"\r\n", b"1\r\n1\r\n", b"0\r\n\r\n", b"Content-Length: 3\r\n", b"Connection: "]
        )
        | st.binary(max_size=20),
        max_size=20,
    )
)
async def test_whatever_a_client_sends_another_is_answered(running: Running, parts: list[bytes]) -> None:
    async with running.client() as client, running.client() as other:
        for part in parts:
            client.writer.write(part)
            await asyncio.sleep(0)
        assert await other.ask("/filter") == (200, "1")
