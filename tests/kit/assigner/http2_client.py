"""A client of HTTP/2 that can also misbehave, and the server that it speaks to."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated, DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes, Settings
from hpack import Encoder
from hyperframe.frame import (
    Frame,
    GoAwayFrame,
    HeadersFrame,
    SettingsFrame,
)

from sharemgr.cluster.config import Tls
from sharemgr.cluster.server import http2
from sharemgr.cluster.server.certificates import tls_context
from sharemgr.cluster.server.serving import Server
from tests.kit.apiserver.certificates import Authority

SCHEDULER = "system:kube-scheduler"
SAFETY_S = 60
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame().serialize()


class Verbs:
    """filter answers with what it got, prioritize with its length, and bind waits until it may go on."""

    def __init__(self) -> None:
        self.by_name = {"filter": self.echo, "prioritize": self.measure, "bind": self.wait}
        self.asked, self.go_on, self.done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.waiting, self.calls = 0, 0

    def echo(self, body: bytes) -> object:
        self.calls += 1
        return json.loads(body)

    async def measure(self, body: bytes) -> object:
        self.calls += 1
        return len(body)

    async def wait(self, body: bytes) -> object:
        self.waiting += 1
        self.asked.set()
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
        self.error_codes: list[int | None] = []
        self.last_stream_ids: list[int] = []
        """Those of the GOAWAYs that came."""
        self.headers: dict[int, dict[bytes, bytes]] = {}
        self.texts: dict[int, bytes] = {}
        self.ended: list[int] = []
        self.reset: list[int] = []

    @property
    def server_name(self) -> str:
        subject = self.writer.get_extra_info("peercert")["subject"]
        return str(dict(part[0] for part in subject)["commonName"])

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
