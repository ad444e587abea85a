"""An answer over HTTP/1.1 that comes bit by bit, read by ``httptools``, and held to bounds."""

import asyncio
from collections.abc import Callable

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_BYTES_MAX = 64 * 1024
"""Of an answer. kube-apiserver's have a few hundred."""

PENDING_BYTES_MAX = 256 * 1024
"""Of an answer's content, that nobody has taken yet: after more of it, no more is read until somebody does."""


class Answer:
    """What comes for one request."""

    def __init__(self, transport: asyncio.Transport, done: Callable[[bool], None]) -> None:
        """``transport`` is what it comes over. ``done`` is called once, when nothing more of it does; with whether
        another can come over it."""
        self.status = 0
        """Of HTTP; 0: it has not begun."""
        self._transport = transport
        self._done: Callable[[bool], None] | None = done
        self._parser = HttpResponseParser(self)
        self._head_bytes = 0
        self._parts: list[bytes] = []
        """What came of its content, and nobody has taken."""
        self._pending_bytes = 0
        self._is_whole = False
        self._is_last = True
        """No other comes after it."""
        self._error: OSError | None = None
        """Why nothing more comes."""
        self._news: asyncio.Future[None] | None = None
        """Somebody waits for it."""
        self._take: Callable[[bytes], bytes] | None = None
        """Who waits for it has it told to this."""
        self._heard_s = 0.0
        self._patience: asyncio.TimerHandle | None = None

    async def begins(self) -> None:
        """Returns when its head is here. Raises OSError where that does not come."""
        while not self.status:
            await self._more()

    async def some(self, take: Callable[[bytes], bytes] | None = None) -> bytes:
        """What is here of its content, and was not taken; waits where that is nothing. Empty at its end. Raises OSError
        where it breaks off.

        What comes while it is waited is told to ``take``, in the call that brings it, so that nobody has to be woken
        for it; it returns what it leaves, and then this returns that. What it raises, this raises."""
        while not self._parts:
            if self._is_whole:
                return b""
            self._take = take
            try:
                await self._more()
            finally:
                self._take = None
        some = b"".join(self._parts)
        self._parts.clear()
        if self._pending_bytes > PENDING_BYTES_MAX and self._done is not None:
            self._transport.resume_reading()
        self._pending_bytes = 0
        return some

    async def read(self) -> bytes:
        """All of its content. Raises OSError where it breaks off."""
        content = await self.some()
        while some := await self.some():
            content += some
        return content

    def end_when_silent(self, silent_s: float) -> None:
        """From now on the answer breaks off with a TimeoutError when nothing came for so long."""
        self._heard_s = asyncio.get_running_loop().time()
        self._look_later(silent_s, silent_s)

    def close(self) -> None:
        """No more of it is read."""
        self._finish(is_kept=False)

    def take_in(self, data: memoryview) -> None:
        """This came over its connection."""
        self._heard_s = asyncio.get_running_loop().time()
        if not self.status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.break_off(ConnectionError(f"what answers is no HTTP/1.1: {error.__context__ or error}"))
            return
        if self._is_whole:
            self._finish(is_kept=not self._is_last)
        elif self._head_bytes > HEAD_BYTES_MAX and not self.status:
            self.break_off(ConnectionError(f"an answer's head has more than {HEAD_BYTES_MAX} bytes"))
            return
        elif self._take is not None and self._parts and self._news is not None and not self._news.done():
            self._hand_over(self._take, self._news)
            return
        elif self._pending_bytes > PENDING_BYTES_MAX:
            self._transport.pause_reading()
        self._tell()

    def break_off(self, error: OSError) -> None:
        """No more of it comes."""
        self._error = error
        self._finish(is_kept=False)
        self._tell()

    def on_message_begin(self) -> None:
        """See httptools, as all that begins with ``on``."""
        if self._is_whole:
            raise ConnectionError("more than one answer comes for a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-encoding" and value.lower() != b"identity":
            raise ConnectionError("an answer is encoded as nobody asked for")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        # Those below go before the answer itself.
        self.status = status if status >= 200 else 0

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)
        self._pending_bytes += len(part)

    def on_message_complete(self) -> None:
        if self.status:
            self._is_whole = True
            # The parser knows it no longer when this has returned.
            self._is_last = not self._parser.should_keep_alive()

    async def _more(self) -> None:
        """Returns when something came. Raises OSError where nothing will."""
        if self._error is not None:
            raise self._error
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _hand_over(self, take: Callable[[bytes], bytes], news: asyncio.Future[None]) -> None:
        some = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._pending_bytes = 0
        try:
            left = take(some)
        except Exception as error:
            news.set_exception(error)
            return
        if left:
            self._parts.append(left)
            self._pending_bytes = len(left)
            self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _finish(self, is_kept: bool) -> None:
        if self._patience is not None:
            self._patience.cancel()
        if self._done is not None:
            done, self._done = self._done, None
            # It leads back here, and what makes a circle is kept until the garbage collector comes by.
            del self._parser
            done(is_kept)

    def _look_later(self, after_s: float, silent_s: float) -> None:
        if self._done is not None:
            self._patience = asyncio.get_running_loop().call_later(after_s, self._look_whether_silent, silent_s)

    def _look_whether_silent(self, silent_s: float) -> None:
        # A timer for each part that comes would cost more than to look, when this one is over, what came meanwhile.
        left_s = self._heard_s + silent_s - asyncio.get_running_loop().time()
        if left_s > 0:
            self._look_later(left_s, silent_s)
        else:
            self.break_off(TimeoutError())
