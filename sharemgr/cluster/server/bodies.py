"""What is kept of requests' bodies, of all connections together."""

from collections.abc import Callable

BODIES_BYTES_MAX = 64 * 1024 * 1024
"""Over HTTP/2 a connection may be sent 32 MiB of bodies at a time (http2.WINDOW_BYTES), and there may be 256. This is
an eighth of what the chart gives the assigner, and holds 150 requests of 5,000 nodes."""


class Bodies:
    """The bodies that are kept: so many bytes at most. Where more come, the requests are refused whose bodies have been
    under way for longest: one that is sent on at once is here within milliseconds."""

    def __init__(self, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self.bytes = 0
        """Kept now, with those of requests that are being answered."""
        self._bytes_max = bytes_max
        self._incoming: dict[Body, None] = {}
        """Those that are not whole, the oldest first."""

    def begin(self, refuse: Callable[[], None]) -> "Body":
        """The body of a request that comes in; ``refuse`` is called where there is no room for it, and nothing of it is
        kept then."""
        body = Body(self, refuse)
        self._incoming[body] = None
        return body

    def take_in(self, size_bytes: int) -> None:
        """Counts bytes that are kept from now on."""
        self.bytes += size_bytes
        while self.bytes > self._bytes_max and self._incoming:
            next(iter(self._incoming)).refuse()

    def comes_no_more(self, body: "Body", dropped_bytes: int) -> None:
        """A body is whole, or so much of it is kept no more."""
        self._incoming.pop(body, None)
        self.bytes -= dropped_bytes


class Body:
    """What is kept of one request."""

    def __init__(self, bodies: Bodies, refuse: Callable[[], None]) -> None:
        self.is_refused = False
        self._bodies = bodies
        self._refuse = refuse
        self._bytes = 0

    def take_in(self, size_bytes: int) -> None:
        """Counts what came of this body. It, or another, may be refused for that."""
        self._bytes += size_bytes
        self._bodies.take_in(size_bytes)

    def is_whole(self) -> None:
        """No more of it comes: it is answered, and not refused."""
        self._bodies.comes_no_more(self, 0)

    def drop(self) -> None:
        """Nothing of it is kept any more."""
        dropped_bytes, self._bytes = self._bytes, 0
        self._bodies.comes_no_more(self, dropped_bytes)

    def refuse(self) -> None:
        """Refuses this body, for which there is no room."""
        self.is_refused = True
        self.drop()
        self._refuse()
