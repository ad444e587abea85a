"""HTTP/2, spoken by a client that can also misbehave, over real TLS connections."""

import asyncio
import gc
import json
import logging
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import pytest
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hyperframe.frame import (
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeshare.contract.errors import Unavailable
from sharemgr.cluster.config import Tls
from sharemgr.cluster.server import http2, serving
from sharemgr.cluster.server.bodies import Bodies
from sharemgr.cluster.server.certificates import tls_context
from sharemgr.cluster.server.frames import SPARE_MAX, SPARE_PER_ANSWER
from sharemgr.cluster.server.serving import BODY_BYTES_MAX, Server
from tests.kit.apiserver.certificates import Authority

SCHEDULER = "system:kube-scheduler"
SAFETY_S = 60
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame().serialize()


class Verbs:
    """filter answers with what it got, prioritize with its length, and bind waits until it may go on."""

    def __init__(self) -> None:
        self.by_name = {"filter": self.echo, "prioritize": self.measure, "bind": self.wait}
        self.go_on, self.done = asyncio.Event(), asyncio.Event()
        self.waiting, self.calls = 0, 0

    async def echo(self, body: bytes) -> object:
        self.calls += 1
        return json.loads(body)

    async def measure(self, body: bytes) -> object:
        self.calls += 1
        return len(body)

    async def wait(self, body: bytes) -> object:
        self.waiting += 1
        await self.go_on.wait()
        self.done.set()
        return body.decode()


class Patient(H2Connection):
    """Goes on after the server's GOAWAY, as clients do while something is to be answered."""

    def _receive_goaway_frame(self, frame: GoAwayFrame) -> tuple[list[Frame], list[Event]]:
        event = ConnectionTerminated()
        event.last_stream_id, event.error_code = frame.last_stream_id, ErrorCodes(frame.error_code)
        return [], [event]


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = Patient()
        self.gives_window = True
        self.error_codes: list[int] = []
        self.last_stream_ids: list[int] = []
        """Those of the GOAWAYs that came."""
        self.headers: dict[int, dict[bytes, bytes]] = {}
        self.texts: dict[int, bytes] = {}
        self.ended: list[int] = []
        self.reset: list[int] = []

    @property
    def server_name(self) -> str:
        subject = self.writer.get_extra_info("peercert")["subject"]
        return dict(part[0] for part in subject)["commonName"]

    async def flush(self) -> None:
        self.writer.write(self.http.data_to_send())
        await self.writer.drain()

    async def read(self) -> bool:
        """False at the connection's end."""
        data = await asyncio.wait_for(self.reader.read(65536), SAFETY_S)
        for event in self.http.receive_data(data):
            match event:
                case ResponseReceived(stream_id=int(number), headers=headers):
                    self.headers[number] = dict(headers or ())
                case DataReceived(stream_id=int(number), data=bytes(part), flow_controlled_length=int(length)):
                    self.texts[number] = self.texts.get(number, b"") + part
                    if self.gives_window:
                        self.http.acknowledge_received_data(length, number)
                case StreamEnded(stream_id=int(number)):
                    self.ended.append(number)
                case StreamReset(stream_id=int(number)):
                    self.reset.append(number)
                case ConnectionTerminated(last_stream_id=int(number), error_code=code):
                    self.last_stream_ids.append(number)
                    self.error_codes.append(code)
        self.writer.write(self.http.data_to_send())
        return bool(data)

    async def send(self, path: str, body: bytes = b"1", *, method: str = "POST", is_whole: bool = True) -> int:
        """The request's number."""
        number = self.http.get_next_available_stream_id()
        self.http.send_headers(number, request(path, method))
        left = memoryview(body)
        while left:
            room = min(self.http.local_flow_control_window(number), self.http.max_outbound_frame_size)
            if room:
                self.http.send_data(number, left[:room])
                left = left[room:]
                await self.flush()
            else:
                assert await self.read()
        if is_whole:
            self.http.end_stream(number)
        await self.flush()
        return number

    async def until(self, holds: Callable[[], object]) -> None:
        while not holds():
            assert await self.read(), "the connection ended"

    async def until_end(self) -> None:
        while await self.read():
            pass

    async def answer(self, number: int) -> tuple[int, str]:
        """Its status and text."""
        await self.until(lambda: number in self.ended)
        return int(self.headers[number][b":status"]), self.texts[number].decode()

    async def ask(self, path: str, body: bytes = b"1", method: str = "POST") -> tuple[int, str]:
        return await self.answer(await self.send(path, body, method=method))


def request(path: str, method: str = "POST") -> list[tuple[str, str]]:
    return [(":method", method), (":path", path), (":scheme", "https"), (":authority", "edgeshare")]


def headers_frame(number: int, *flags: str) -> bytes:
    return HeadersFrame(number, Encoder().encode(request("/bind")), flags=("END_HEADERS", *flags)).serialize()


PINGS = PingFrame(opaque_data=bytes(8)).serialize() * 4096
ANSWER_BYTES = 100_000
ANSWERS_BYTES_MAX = 32 * 1024 * 1024
TOO_MANY = b"".join(headers_frame(number) for number in range(1, 2 * http2.STREAMS_MAX + 3, 2))
HEADERS = headers_frame(1, "END_STREAM")


class Running:
    """The server, and who may connect."""

    def __init__(self, authority: Authority, verbs: Verbs) -> None:
        self._authority = authority
        self.server = Server(
            "127.0.0.1:0", (SCHEDULER,), lambda: verbs.by_name, lambda verb, status: None, lambda kind: None
        )
        self.url = ""

    def context(self, name: str) -> ssl.SSLContext:
        certificate, key = self._authority.issue(name, name, hosts=("IP:127.0.0.1",))
        return tls_context(
            Tls(certificate=certificate, private_key=key, client_authority=self._authority.certificate, clients=())
        )

    @asynccontextmanager
    async def connection(self, name: str = SCHEDULER) -> AsyncIterator[Client]:
        context = ssl.create_default_context(cafile=self._authority.certificate)
        context.load_cert_chain(*self._authority.issue(name, name))
        context.set_alpn_protocols([http2.NAME])
        parts = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def client(self, name: str = SCHEDULER, window: int = 65535) -> AsyncIterator[Client]:
        """That has said its own first words."""
        async with self.connection(name) as client:
            client.http.local_settings = Settings(initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window})
            client.http.initiate_connection()
            await client.flush()
            yield client


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What a client does is no error, and nothing raised is lost."""
    gc.freeze()  # What was there before is not the test's: to walk over all of it was a third of what they take.
    yield
    gc.collect()
    assert not [one for at in ("call", "teardown") for one in caplog.get_records(at) if one.levelno >= logging.ERROR]


@pytest.fixture
async def verbs() -> Verbs:
    return Verbs()


@pytest.fixture
async def running(authority: Authority, verbs: Verbs) -> AsyncIterator[Running]:
    running = Running(authority, verbs)
    async with running.server.running(running.context("edgeshare")) as running.url:
        yield running
        verbs.go_on.set()


async def test_what_a_verb_returns_is_sent_as_json(running: Running) -> None:
    async with running.client() as client:
        assert await client.ask("/filter?timeout=1s", b'{"a": ["\xc3\xa9", 1]}') == (200, '{"a":["\\u00e9",1]}')
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
    async def refuse(body: bytes) -> object:
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        (connection,) = running.server._http2
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


async def test_who_asks_may_send_frames_that_ask_for_nothing_all_the_time(running: Running) -> None:
    ping = PingFrame(opaque_data=bytes(8)).serialize()
    async with running.client() as client:
        for _ in range(1 + SPARE_MAX // SPARE_PER_ANSWER):
            client.writer.write(ping * SPARE_PER_ANSWER)
            assert await client.ask("/filter") == (200, "1")


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
        (connection,) = running.server._http2
        assert len(connection._http.remote_settings) <= len(SettingCodes)


async def test_connections_that_end_are_not_in_the_way_of_new_certificates(running: Running) -> None:
    async with running.client() as other, running.connection() as client:
        # What TLS says at a connection's end is not answered.
        client.writer.transport.pause_reading()
        client.writer.write(PREFACE + GoAwayFrame().serialize())
        assert await other.ask("/filter") == (200, "1")
        assert len(running.server._http2) == 2
        await running.server.use(running.context("edgeshare-new"))
        await other.until_end()


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
