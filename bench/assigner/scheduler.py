"""A stand-in for kube-scheduler, as its extender sees it: all that it asks goes over one HTTP/2 connection."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError

from edgeshare.contract.errors import Unavailable

ASK_AGAIN_S = 0.05


class Scheduler(asyncio.Protocol):
    """One connection of it."""

    def __init__(self, authority: str) -> None:
        self._headers = [(":method", "POST"), (":scheme", "https"), (":authority", authority)]
        self._http = H2Connection(H2Configuration(header_encoding="utf-8"))
        self._answers: dict[int, asyncio.Future[bytes]] = {}
        self._status: dict[int, str] = {}
        self._bodies: dict[int, bytes] = {}

    async def ask(self, verb: str, message: object) -> Any:
        """What is answered. Raises Unavailable where that is another status than 200."""
        number = self._http.get_next_available_stream_id()
        body = json.dumps(message, separators=(",", ":")).encode()
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("accept-encoding", "gzip"),
        ]
        self._http.send_headers(number, [*self._headers, (":path", f"/{verb}"), *headers])
        self._flush()
        self._http.send_data(number, body, end_stream=True)
        self._flush()
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        return json.loads(await answer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._http.initiate_connection()
        self._flush()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            events = self._http.receive_data(data)
        except ProtocolError:
            # After a GOAWAY h2 takes in nothing more.
            self._transport.abort()
            return
        for event in events:
            match event:
                case ResponseReceived(headers=headers, stream_id=int(number)):
                    self._status[number] = dict(headers or ())[":status"]
                    self._bodies[number] = b""
                case DataReceived(stream_id=int(number), data=bytes(part), flow_controlled_length=int(length)):
                    self._bodies[number] += part
                    self._http.acknowledge_received_data(length, number)
                case StreamEnded(stream_id=int(number)):
                    self._answered(number)
                case StreamReset(stream_id=int(number)):
                    self._answers.pop(number).set_exception(Unavailable("the assigner refused a request"))
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        for answer in self._answers.values():
            answer.set_exception(Unavailable("the assigner has ended the connection"))

    def close(self) -> None:
        """Ends the connection."""
        self._transport.close()

    def _answered(self, number: int) -> None:
        answer, status, body = self._answers.pop(number), self._status.pop(number), self._bodies.pop(number)
        if status == "200":
            answer.set_result(body)
        else:
            answer.set_exception(Unavailable(f"the assigner answered {status}: {body.decode()}"))

    def _flush(self) -> None:
        self._transport.write(self._http.data_to_send())


@asynccontextmanager
async def scheduling(url: str, context: ssl.SSLContext) -> AsyncIterator[Scheduler]:
    """One that may ask, when the assigner answers: it does when it has read all that is there."""
    context.set_alpn_protocols(["h2"])
    host, port = str(urlsplit(url).hostname), urlsplit(url).port
    while True:
        _, scheduler = await asyncio.get_running_loop().create_connection(
            lambda: Scheduler(f"{host}:{port}"), host, port, ssl=context
        )
        try:
            await scheduler.ask("filter", {"Pod": {"metadata": {"name": "first", "uid": "first"}}, "NodeNames": []})
            break
        except Unavailable:
            scheduler.close()
            await asyncio.sleep(ASK_AGAIN_S)
    try:
        yield scheduler
    finally:
        scheduler.close()
