"""What a client of HTTP/2 that misbehaves gets, and that others are answered."""

import asyncio
import json
import struct

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sharemgr.cluster.server import http2, serving
from sharemgr.cluster.server.frames import SPARE_MAX
from sharemgr.cluster.server.h2_server import HEADERS_BYTES_MAX
from tests.kit.assigner.http2_client import PREFACE, SAFETY_S, Running, Verbs, headers_frame, request
from tests.kit.properties.examples import examples

PINGS = PingFrame(opaque_data=bytes(8)).serialize() * 4096
ANSWER_BYTES = 100_000
ANSWERS_BYTES_MAX = 32 * 1024 * 1024
TOO_MANY = b"".join(headers_frame(number) for number in range(1, 2 * http2.STREAMS_MAX + 3, 2))
HEADERS = headers_frame(1, "END_STREAM")
HEADER = b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4000
"""A field of 4,000 bytes that the other side is to remember (RFC 7541, 5.1 and 6.2.1)."""
AGAIN = b"\xbe"
"""The field that was remembered last (RFC 7541, 6.1)."""
HEADER_BYTES_MAX = 1 << 20
FITTING_TIMES = HEADERS_BYTES_MAX // (4000 + 1 + 32)
"""So often it may be there: each counts its name, its value and 32 bytes (RFC 9113, 6.5.2)."""


def bomb(number: int, times: int) -> bytes:
    """A request with that field so often."""
    head = Encoder().encode(request("/bind"))
    return HeadersFrame(number, head + HEADER + AGAIN * (times - 1), flags=["END_HEADERS", "END_STREAM"]).serialize()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00\xff" * 5000, id="no preface"),
        pytest.param(b"POST /filter HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1", id="HTTP/1.1"),
        pytest.param(PREFACE + HEADERS + b"\0\0\4\3\0" + bytes(8), id="a frame that cannot be"),
        pytest.param(PREFACE + TOO_MANY, id="too many requests"),
        pytest.param(PREFACE + HEADERS + GoAwayFrame().serialize() * 2, id="the client leaves"),
        pytest.param(PREFACE + HEADERS + GoAwayFrame().serialize() + PINGS, id="more after it left"),
        pytest.param(PREFACE + WindowUpdateFrame(0, 2**31 - 1).serialize(), id="more room than there can be"),
        pytest.param(PREFACE + HeadersFrame(1, b"\xff" * 5000, flags=["END_HEADERS"]).serialize(), id="no HPACK"),
    ],
)
async def test_what_is_no_http2_ends_its_connection_and_no_other(running: Running, verbs: Verbs, sent: bytes) -> None:
    async with running.client() as client, running.connection() as bad:
        bad.writer.write(sent)
        await bad.writer.drain()
        assert await client.ask("/filter") == (200, "1")
        while await asyncio.wait_for(bad.reader.read(65536), SAFETY_S):
            pass
        verbs.go_on.set()
        assert await client.ask("/filter") == (200, "1")


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.builds(
            lambda kind, flags, number, body: len(body).to_bytes(3) + bytes([kind, flags]) + number.to_bytes(4) + body,
            st.integers(0, 12),
            st.sampled_from([0, 1, 4, 5, 8, 0x20, 0x25, 0xFF]),
            st.integers(0, 5),
            st.one_of(st.binary(max_size=20), st.just(HEADERS[9:]), st.just((1).to_bytes(4)), st.just(bytes(8))),
        )
        | st.binary(max_size=20),
        max_size=20,
    )
)
async def test_whatever_a_client_sends_another_is_answered(running: Running, parts: list[bytes]) -> None:
    async with running.client() as client, running.connection() as bad:
        bad.writer.write(PREFACE + b"".join(parts))
        assert await client.ask("/filter") == (200, "1")


async def test_a_client_that_does_not_read_is_not_read_from(running: Running) -> None:
    text = json.dumps("x" * ANSWER_BYTES)
    async with running.client(window=2**31 - 1) as client:
        client.http.increment_flow_control_window(2**31 - 1 - http2.FIRST_WINDOW)
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._connections
        client.writer.transport.pause_reading()
        asked = []
        while connection._transport.is_reading():
            assert len(asked) * ANSWER_BYTES < ANSWERS_BYTES_MAX
            if not client.writer.transport.get_write_buffer_size():
                asked.append(await client.send("/filter", text.encode()))
            await asyncio.sleep(0)
        async with running.client() as other:
            assert await other.ask("/filter") == (200, "1")
        # It goes on when the client reads again.
        client.writer.transport.resume_reading()
        for number in asked:
            assert await client.answer(number) == (200, text)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(PingFrame(opaque_data=bytes(8)).serialize(), id="pings"),
        pytest.param(SettingsFrame().serialize(), id="settings"),
        pytest.param(PriorityFrame(1, depends_on=3).serialize(), id="priorities"),
        pytest.param(WindowUpdateFrame(0, 1).serialize(), id="room"),
        pytest.param(b"\0\0\0\x63" + bytes(5), id="frames of no kind"),
    ],
)
async def test_who_sends_too_many_frames_that_ask_for_nothing_is_told_so_and_ended(
    running: Running, caplog: pytest.LogCaptureFixture, frame: bytes
) -> None:
    async with running.client() as client, running.connection() as bad:
        # More than is read at a time, so that some comes after the end.
        bad.writer.write(PREFACE + frame * 20 * SPARE_MAX)
        await bad.until_end()
        assert bad.error_codes == [ErrorCodes.ENHANCE_YOUR_CALM]
        assert await client.ask("/filter") == (200, "1")
    assert caplog.messages == ["a connection of 127.0.0.1 is ended: it has sent too many frames that ask for nothing"]


@pytest.mark.parametrize("part", [b"", HEADER], ids=["empty", "full"])
async def test_a_header_without_end_is_ended_before_it_is_a_mebibyte(
    running: Running, caplog: pytest.LogCaptureFixture, part: bytes
) -> None:
    async with running.client() as client, running.connection() as bad:
        bad.writer.write(PREFACE + HeadersFrame(1, part).serialize())
        bad.writer.write(ContinuationFrame(1, part).serialize() * (HEADER_BYTES_MAX // len(HEADER)))
        await bad.until_end()
        assert bad.error_codes == [ErrorCodes.PROTOCOL_ERROR]
        assert await client.ask("/filter") == (200, "1")
    (said,) = caplog.messages
    assert said.startswith("a connection of 127.0.0.1 is ended: what came over it is no HTTP/2: ")


@pytest.mark.parametrize("times", [FITTING_TIMES + 1, 12_000])
async def test_a_header_that_unpacks_to_more_than_may_be_ends_its_connection(
    running: Running, verbs: Verbs, caplog: pytest.LogCaptureFixture, times: int
) -> None:
    """A field that is said once, and then named again and again by a byte each."""
    async with running.client() as client, running.connection() as bad:
        bad.writer.write(PREFACE + bomb(1, FITTING_TIMES))
        await asyncio.wait_for(verbs.asked.wait(), SAFETY_S)
        bad.writer.write(bomb(3, times))
        await bad.until_end()
        assert bad.error_codes == [ErrorCodes.ENHANCE_YOUR_CALM]
        assert await client.ask("/filter") == (200, "1")
    (said,) = caplog.messages
    assert said.startswith("a connection of 127.0.0.1 is ended: what came over it is no HTTP/2: ")


async def test_who_gives_up_all_that_it_asks_is_ended(running: Running, verbs: Verbs) -> None:
    async with running.client() as bad:
        for _ in range(SPARE_MAX + 1):
            number = bad.http.get_next_available_stream_id()
            bad.http.send_headers(number, request("/bind"), end_stream=True)
            bad.http.reset_stream(number)
        bad.writer.write(bad.http.data_to_send())
        await bad.until_end()
        assert bad.error_codes == [ErrorCodes.ENHANCE_YOUR_CALM]
        assert verbs.waiting <= http2.ANSWERS_MAX


async def test_a_request_given_room_and_given_up_at_once_harms_no_other(running: Running, verbs: Verbs) -> None:
    async with running.client(window=1) as client:
        bind, number = await client.send("/bind"), await client.send("/filter", b"12")
        await client.until(lambda: number in client.texts)
        client.http.increment_flow_control_window(1, number)
        client.http.reset_stream(number)
        await client.flush()
        assert await client.ask("/filter") == (200, "1")
        client.http.increment_flow_control_window(2, bind)
        verbs.go_on.set()
        assert await client.answer(bind) == (200, '"1"')


async def test_settings_that_mean_nothing_are_not_kept(running: Running) -> None:
    async with running.client() as client:
        for first in range(16, 40_000, 2_000):
            said = b"".join(struct.pack(">HL", number, 1) for number in range(first, first + 2_000))
            client.writer.write(len(said).to_bytes(3, "big") + b"\x04" + bytes(5) + said)
        assert await client.ask("/filter") == (200, "1")
        (connection,) = running.server._connections
        assert isinstance(connection, http2.Connection)
        assert len(connection._http.remote_settings) <= len(SettingCodes)


async def test_a_client_that_says_nothing_is_sent_away_and_its_request_goes_on(
    running: Running, verbs: Verbs, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a client to have said something, also where the machine does something else for a moment.
    monkeypatch.setattr(serving, "KEEP_ALIVE_S", 1)
    async with running.connection() as mute, running.client() as silent, running.client() as client:
        await silent.send("/bind")
        silent.writer.transport.pause_reading()
        assert await client.ask("/filter") == (200, "1")
        # Whose turn is after the other's.
        await client.until_end()
        while await asyncio.wait_for(mute.reader.read(65536), SAFETY_S):
            pass
        verbs.go_on.set()
        await asyncio.wait_for(verbs.done.wait(), SAFETY_S)
    assert client.last_stream_ids == [1]
