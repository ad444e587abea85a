"""A client's one connection to a server of the test's own event loop."""

import asyncio
import http.client
import ssl
import threading
from typing import Self
from urllib.parse import urlsplit

SAFETY_S = 60


class Connection:
    """Opened at the first request, and kept."""

    def __init__(self, url: str, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.sent = threading.Event()
        """Set when something was asked."""
        self._connection = (
            http.client.HTTPConnection(parts.hostname, parts.port, SAFETY_S)
            if parts.scheme == "http"
            else http.client.HTTPSConnection(parts.hostname, parts.port, timeout=SAFETY_S, context=context)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()

    @property
    def is_open(self) -> bool:
        """Whether the server keeps it."""
        return self._connection.sock is not None

    @property
    def port(self) -> int:
        """The client's own."""
        return int(self._connection.sock.getsockname()[1])

    @property
    def server_name(self) -> str:
        """The common name in the server's certificate."""
        assert isinstance(self._connection.sock, ssl.SSLSocket)
        certificate = self._connection.sock.getpeercert()
        assert certificate is not None
        subject: dict[str, str] = dict(part[0] for part in certificate["subject"])  # type: ignore[misc]
        return subject["commonName"]

    @property
    def certificate(self) -> bytes:
        """The server's, as it came (DER)."""
        assert isinstance(self._connection.sock, ssl.SSLSocket)
        certificate = self._connection.sock.getpeercert(binary_form=True)
        assert certificate is not None
        return certificate

    async def ask(self, path: str, body: bytes, method: str = "POST") -> tuple[int, str]:
        """Status and text."""
        return await asyncio.to_thread(self._ask, path, body, method)

    def _ask(self, path: str, body: bytes, method: str) -> tuple[int, str]:
        self._connection.request(method, path, body)
        self.sent.set()
        response = self._connection.getresponse()
        return response.status, response.read().decode()
