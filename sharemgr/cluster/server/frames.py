"""How many frames an HTTP/2 connection may send that ask for nothing: pings, settings, resets, room and the like. Each
costs about as much to read as a part of a request, and a client can send them without end."""

SPARE_MAX = 4_000
"""At once, some 0.1 s of a core. The longest answers have 4 MiB, a request's names, for which Go's client gives room
back in 2,000 frames (below); and of at most 250 requests at a time (h2_server.STREAMS_MAX) that it gives up, it sends a
reset and may send a ping for each."""

SPARE_PER_ANSWER = 4
"""What a request may come with: a small body before its end, a ping, and room for a small answer, twice."""

ANSWER_BYTES_PER_SPARE = 1024
"""Go's client gives room for an answer back in parts of 4 KiB or more, each in a frame for the request and one for the
connection (golang.org/x/net/http2, inflowMinRefresh): this lets through twice that."""

DATA_BYTES_MIN = 1024
"""A frame with less of a request's body, and not its end, counts as one that asks for nothing: a client that sends what
it has sends 16 KiB in each, or what there is room for."""

PREFACE_BYTES = 24
HEAD_BYTES = 9
DATA, HEADERS = 0, 1
END_STREAM = 1
"""RFC 9113: 3.4, 4.1, 6.1, 6.2."""


class FrameBudget:
    """How many frames of one connection may still ask for nothing. Answers give some back, so that what a client costs
    stays in proportion to what it asks, and no clock is needed."""

    def __init__(self) -> None:
        self._spare = SPARE_MAX
        self._passed_over = PREFACE_BYTES
        """Bytes that come before the next frame's head."""
        self._head = b""
        """What has come of it."""

    def spend(self, data: bytes) -> bool:
        """Counts what of ``data``, the next bytes that came, asks for nothing; False where that is more than may be."""
        offset = 0
        while self._spare >= 0:
            skipped = min(self._passed_over, len(data) - offset)
            self._passed_over -= skipped
            offset += skipped
            part = data[offset : offset + HEAD_BYTES - len(self._head)]
            if not part:
                return True
            self._head += part
            offset += len(part)
            if len(self._head) == HEAD_BYTES:
                self._passed_over = length = int.from_bytes(self._head[:3], "big")
                kind, flags = self._head[3], self._head[4]
                self._head = b""
                asks = kind == HEADERS or (kind == DATA and (length >= DATA_BYTES_MIN or flags & END_STREAM))
                self._spare -= not asks
        return False

    def answered(self, sent_bytes: int) -> None:
        """A request of it was answered whose client was there, with so much."""
        self._spare = min(SPARE_MAX, self._spare + SPARE_PER_ANSWER + sent_bytes // ANSWER_BYTES_PER_SPARE)
