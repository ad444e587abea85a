"""HTTP/1.1, read by ``httptools``: what comes over a connection is answered in turn. It is what kube-scheduler speaks
without TLS, as beside it in its pod."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpRequestParser

from sharemgr.cluster.server.answers import Answer, Asked
from sharemgr.cluster.server.bodies import Body
from sharemgr.cluster.server.connection import ClientConnection, Terms
from sharemgr.cluster.server.endings import Ending

BESIDE_BODY_BYTES_MAX = 64 * 1024
"""Of a request, what is none of its body: its head, the sizes of its body's pieces and what may follow them.
kube-scheduler's head has 200 bytes. Looked at when what was read at a time, 256 KiB at most, has been taken in."""

WAITING_MAX = 16
"""Requests of a connection that wait for the answer to another. kube-scheduler sends none before it has that."""

NAME = "http/1.1"
"""As TLS names it (RFC 7301)."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True)
class _Request:
    """One that is here, and waits for its answer."""

    asked: Asked
    kept: Body
    is_last: bool
    """The client wants no more of the connection, or what follows cannot be read."""


class Connection(ClientConnection):
    """One client's connection."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self._parser: HttpRequestParser | None = None
        """None at the end: it leads back here, and what makes a circle is kept until the garbage collector comes by."""
        self._beside_body = 0
        self._path = b""
        self._body = bytearray()
        self._kept: Body | None = None
        """Of the request that comes in, once its head is here."""
        self._is_awaited = False
        """The client sends the body when it is told to go on."""
        self._is_deaf = False
        """A body is too long: what still comes is passed over, so that its client reads the answer before the end."""
        self._waiting: deque[_Request] = deque()
        self._work: asyncio.Task[None] | None = None
        """An answer is waited for."""
        self._is_paused = False
        """Its client does not read what it was answered."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._parser = HttpRequestParser(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        super().connection_lost(exc)
        self._parser = None
        if self._kept is not None:
            self._kept.drop()
        self._drop_waiting()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_paused = True
        super().pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._is_paused = False
        super().resume_writing()
        self._answer_waiting()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._parser is None or self._transport.is_closing():
            return
        self._heard_s = self._loop.time()
        self._beside_body += len(data)
        if not self._is_deaf:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade:
                self._refuse("another protocol is asked for")
            except HttpParserCallbackError:
                raise
            except HttpParserError as error:
                self._refuse(f"what came over it is no HTTP/1.1: {error}")
        if self._beside_body > (self._terms.body_bytes_max if self._is_deaf else BESIDE_BODY_BYTES_MAX):
            self._refuse(f"a request has more than {BESIDE_BODY_BYTES_MAX} bytes beside its body, or goes on and on")
        elif len(self._waiting) > WAITING_MAX:
            self._refuse(f"more than {WAITING_MAX} requests wait for the answer to another")
        self._answer_waiting()

    def on_message_begin(self) -> None:
        """See httptools, as all that follows until ``leave``."""
        self._path, self._body, self._is_awaited = b"", bytearray(), False

    def on_url(self, part: bytes) -> None:
        self._path += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"expect":
            self._is_awaited = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        if self._is_deaf:
            return
        self._kept = self._terms.bodies.begin(self._transport.abort)
        if self._is_awaited and not self._is_answering:
            self._transport.write(CONTINUE)

    def on_body(self, part: bytes) -> None:
        kept = self._kept
        if kept is None or kept.is_refused:
            return
        self._beside_body -= len(part)
        self._body += part
        kept.take_in(len(part))
        if len(self._body) > self._terms.body_bytes_max:
            self._is_deaf = True
            kept.drop()
            self._ask(None)

    def on_message_complete(self) -> None:
        assert self._parser is not None
        self._beside_body = 0
        if self._kept is not None and not self._kept.is_refused and not self._parser.should_upgrade():
            self._ask(bytes(self._body))

    def leave(self) -> None:
        """The next answer is its last."""
        self._is_leaving = True

    def end(self) -> None:
        """Ends the connection: at once where nothing is being asked, else with the answer."""
        self._is_leaving = True
        if not self._is_answering:
            self._transport.close()

    @property
    def _is_answering(self) -> bool:
        """Whether an answer is still to come."""
        return self._work is not None or bool(self._waiting)

    def _ask(self, body: bytes | None) -> None:
        assert self._parser is not None
        assert self._kept is not None
        asked = Asked(self._parser.get_method().decode("ascii"), self._path.decode("ascii", "replace"), body)
        is_last = self._is_deaf or not self._parser.should_keep_alive()
        self._kept.is_whole()
        self._waiting.append(_Request(asked, self._kept, is_last))
        self._kept, self._body = None, bytearray()

    def _answer_waiting(self) -> None:
        """Answers in turn those that wait, as far as nothing has to be waited for."""
        while self._waiting and self._work is None and not self._is_paused and not self._transport.is_closing():
            request = self._waiting.popleft()
            found = self._terms.answering(request.asked)
            if isinstance(found, Answer):
                self._send(request, found)
            else:
                self._work = asyncio.create_task(self._answer_later(request, found))

    async def _answer_later(self, request: _Request, found: Coroutine[Any, Any, Answer]) -> None:
        # Sent from here, and not when the task is found to be done: that is another turn of the loop.
        try:
            answer = await found
        finally:
            self._work = None
            request.kept.drop()
        self._send(request, answer)
        if self._waiting:
            # Not from this task: what waits for nothing is answered without one.
            self._loop.call_soon(self._answer_waiting)

    def _send(self, request: _Request, answer: Answer) -> None:
        request.kept.drop()
        if self._transport.is_closing():
            return
        is_last = answer.is_last or request.is_last or self._is_leaving
        self._transport.write(_written(request.asked.method, answer, is_last))
        if is_last:
            self._is_leaving = True
            self._drop_waiting()
            if not self._is_deaf:
                self._transport.close()

    def _drop_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().kept.drop()

    def _refuse(self, why: str) -> None:
        """What it says is not to be answered, and nothing more is read of it."""
        if self._transport.is_closing():
            return
        self._terms.tell(Ending.PROTOCOL, why)
        if not self._is_answering and not self._is_deaf:
            answer = Answer(HTTPStatus.BAD_REQUEST, "text/plain", f"{why}\n".encode())
            self._transport.write(_written("", answer, True))
            self._transport.close()
        else:
            self._transport.abort()

    def _end_idle(self) -> None:
        if self._transport.get_write_buffer_size():
            # It does not read, so that a close would wait for ever.
            self._transport.abort()
        elif self._is_answering:
            self._look_later()
        else:
            self._transport.close()


def _written(method: str, answer: Answer, is_last: bool) -> bytes:
    head = _head(answer.status, answer.content_type, is_last) % len(answer.body)
    return head if method == "HEAD" else head + answer.body


@cache
def _head(status: int, content_type: str, is_last: bool) -> bytes:
    """In which the length is still to be filled in. There are few."""
    end = "Connection: close\r\n" if is_last else ""
    line = f"HTTP/1.1 {status:d} {HTTPStatus(status).phrase}"
    return f"{line}\r\nContent-Type: {content_type}\r\nContent-Length: %d\r\n{end}\r\n".encode()
