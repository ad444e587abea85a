"""HTTP/2 on connections whose handshake agreed on it. kube-scheduler sends all that it asks over one of them, side by
side; of HTTP/1.1 connections it keeps two, and shakes hands anew for most of the Bindings that go on beside each other.
"""

import asyncio
from dataclasses import dataclass, field

from jh2.errors import ErrorCodes
from jh2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from jh2.exceptions import ProtocolError
from jh2.hyperframe.frame import GoAwayFrame

from sharemgr.cluster.server.answers import Answer, Asked
from sharemgr.cluster.server.bodies import Body
from sharemgr.cluster.server.connection import ClientConnection, Terms
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.server.frames import FrameBudget
from sharemgr.cluster.server.h2_server import FIRST_WINDOW, STREAMS_MAX, h2_server

NAME = "h2"
"""What a handshake calls it (RFC 9113, 3.1)."""

ANSWERS_MAX = 2 * STREAMS_MAX
"""Requests at a time of a connection that are being answered, with those that the client has given up meanwhile."""

STREAM_ID_MAX = 2**31 - 1

LEAVING = b"leaving."
"""Eight bytes that a ping carries, and brings back."""

WINDOW_BYTES = 32 * 1024 * 1024
"""Of what is sent on a connection, what of it is kept until its request is whole."""


@dataclass(slots=True)
class _Stream:
    """A request that is coming in, being answered, or whose answer is going out."""

    method: str
    path: str
    kept: Body
    body: bytearray = field(default_factory=bytearray)
    received: int = 0
    """Bytes of its window that are to be given back."""
    is_whole: bool = False
    """No more of it comes."""
    is_begun: bool = False
    """Being answered, or refused."""
    left: bytes = b""
    """Of the answer, what the client has no room for yet."""


class Connection(ClientConnection):
    """One client's connection."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._http = h2_server(terms.body_bytes_max)
        self._frames = FrameBudget()
        self._streams: dict[int, _Stream] = {}
        self._answers: set[asyncio.Task[None]] = set()
        self._asked_count = 0
        """Of those, what is being answered and not refused."""
        self._is_left = False
        """The client knows that it is to send no more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._http.initiate_connection()
        self._http.increment_flow_control_window(WINDOW_BYTES - FIRST_WINDOW)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        super().connection_lost(exc)
        self._drop_all()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._frames.spend(data):
            # Before h2, which would read all of them.
            self._terms.tell(Ending.FLOOD, "it has sent too many frames that ask for nothing")
            self._close(ErrorCodes.ENHANCE_YOUR_CALM)
            return
        self._heard_s = self._loop.time()
        try:
            for event in self._http.receive_data(data):
                self._take(event)
            # Now only: h2 knows already of all that came, a request's end after room for it too.
            for number in [number for number, stream in self._streams.items() if stream.left]:
                self._send(number)
        except ProtocolError as error:
            # h2 has told the client so.
            self._terms.tell(Ending.PROTOCOL, f"what came over it is no HTTP/2: {error}")
            self._end()
            return
        self._flush()
        self._close_if_done()

    def leave(self) -> None:
        """Asks the client to send no more on this connection, and ends when all that came is answered."""
        if not self._is_leaving and not self._transport.is_closing():
            self._is_leaving = True
            # h2 itself would send nothing after it. What was sent before the client knows of it is let in: when it has
            # answered to the ping, all of that is here (RFC 9113, 6.8).
            self._transport.write(GoAwayFrame(last_stream_id=STREAM_ID_MAX).serialize())
            self._http.ping(LEAVING)
            self._flush()

    def _end_idle(self) -> None:
        self._close()

    def _close(self, why: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        self._http.close_connection(why)
        self._end()

    def _end(self) -> None:
        """From here on h2 sends nothing. Once only: a second close makes some transports forget their connection."""
        self._drop_all()
        if not self._transport.is_closing():
            self._flush()
            self._transport.close()

    def _drop_all(self) -> None:
        for stream in self._streams.values():
            if not stream.is_begun:
                stream.kept.drop()
        self._streams.clear()

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived(headers=headers, stream_id=int(number)):
                told = dict(headers or ())
                method, path = (told.get(name, b"").decode("ascii", "replace") for name in (b":method", b":path"))
                self._streams[number] = _Stream(method, path, self._terms.bodies.begin(lambda: self._refuse(number)))
            case DataReceived(stream_id=int(number), data=bytes(data), flow_controlled_length=int(length)):
                self._take_in(number, data, length)
            case StreamEnded(stream_id=int(number)):
                if number in self._streams:
                    self._streams[number].is_whole = True
                self._begin(number)
            case StreamReset(stream_id=int(number)):
                self._forget(number)
            case PingAckReceived(ping_data=data):
                self._is_left = data == LEAVING
            case ConnectionTerminated():
                self._end()

    def _take_in(self, number: int, data: bytes, length: int) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.is_begun:
            self._http.acknowledge_received_data(length, number)
            return
        stream.received += length
        stream.body += data
        stream.kept.take_in(len(data))
        if len(stream.body) > self._terms.body_bytes_max:
            self._begin(number, too_long=True)

    def _refuse(self, number: int) -> None:
        """Refuses a request that is not whole, for whose body there is no room."""
        stream = self._streams[number]
        stream.is_begun = True
        stream.body.clear()
        # Another connection may be reading. And h2 may know of more that this one has said by now.
        asyncio.get_running_loop().call_soon(self._send_anew, number)

    def _send_anew(self, number: int) -> None:
        """Nothing was done for a request, says this: it may be sent anew (RFC 9113, 8.7)."""
        if number in self._streams:
            self._http.reset_stream(number, ErrorCodes.REFUSED_STREAM)
            self._forget(number)
            self._flush()
            self._close_if_done()

    def _begin(self, number: int, too_long: bool = False) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.is_begun:
            return
        stream.is_begun = True
        self._give_back(number, stream)
        body = None if too_long else bytes(stream.body)
        stream.body.clear()
        stream.kept.is_whole()
        if too_long:
            stream.kept.drop()
        task = asyncio.create_task(self._answer(number, Asked(stream.method, stream.path, body)))
        task.add_done_callback(lambda _: stream.kept.drop())
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, number: int, asked: Asked) -> None:
        if self._asked_count == ANSWERS_MAX:
            self._send_anew(number)
            return
        self._asked_count += 1
        found = self._terms.answering(asked)
        answer = found if isinstance(found, Answer) else await found
        self._asked_count -= 1
        stream = self._streams.get(number)
        if stream is None:
            return
        length = str(len(answer.body))
        headers = [(":status", str(answer.status)), ("content-type", answer.content_type), ("content-length", length)]
        self._http.send_headers(number, headers)
        stream.left = answer.body
        self._frames.answered(len(answer.body))
        self._send(number)
        self._flush()
        if answer.is_last:
            self.leave()
        self._close_if_done()

    def _send(self, number: int) -> None:
        """As much of the answer as there is room for."""
        stream = self._streams[number]
        while stream.left:
            room = min(self._http.local_flow_control_window(number), self._http.max_outbound_frame_size)
            if room <= 0:
                return
            part, stream.left = stream.left[:room], stream.left[room:]
            self._http.send_data(number, part, end_stream=not stream.left)
        if not stream.is_whole:
            # The rest of it is not wanted.
            self._http.reset_stream(number)
        self._forget(number)

    def _forget(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            if not stream.is_begun:
                stream.kept.drop()
            self._give_back(number, stream)

    def _give_back(self, number: int, stream: _Stream) -> None:
        if stream.received:
            self._http.acknowledge_received_data(stream.received, number)
            stream.received = 0

    def _flush(self) -> None:
        data = self._http.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _close_if_done(self) -> None:
        if self._is_left and not self._streams and not self._transport.is_closing():
            self._close()
