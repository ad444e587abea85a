"""``python -m bench.assigner.flooding URL AUTHORITY CERTIFICATE KEY FLOOD``: floods the assigner until it is ended."""

import asyncio
import logging
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, repeat
from urllib.parse import urlsplit

from hyperframe.frame import (
    ContinuationFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from sharemgr.cluster.server import http2
from tests.kit.assigner.http2_client import PREFACE, headers_frame

SILENT = "silent connections"
SILENT_CONNECTIONS = 2_500
ADDRESSES = 250
"""From which the silent ones come, and only those: of one address few may be in the handshake."""

CONNECTIONS = 8
"""Of all others at a time; who is sent away comes again."""

AT_ONCE = 1_000
"""Frames that are written in one go."""

HEADER = b"\x40\x01a\x01b" * 1_000
"""Literal fields that the other side is to remember (RFC 7541, 6.2.1)."""


def resets() -> Iterator[bytes]:
    """Requests that are given up as soon as they are made."""
    for number in count(1, 2):
        yield headers_frame(number, "END_STREAM") + RstStreamFrame(number, error_code=8).serialize()


def continuations() -> Iterator[bytes]:
    """One request whose header has no end."""
    yield HeadersFrame(1, HEADER).serialize()
    yield from repeat(ContinuationFrame(1, HEADER).serialize())


def requests() -> Iterator[bytes]:
    """Requests whose answers are not read."""
    for number in count(1, 2):
        yield headers_frame(number, "END_STREAM")


FLOODS: dict[str, Callable[[], Iterator[bytes]]] = {
    "requests that are given up": resets,
    "requests, too many": requests,
    "a header without end": continuations,
    "settings": lambda: repeat(SettingsFrame().serialize()),
    "priorities": lambda: repeat(PriorityFrame(1, depends_on=3).serialize()),
    "pings": lambda: repeat(PingFrame(opaque_data=bytes(8)).serialize()),
    "room": lambda: repeat(WindowUpdateFrame(0, 1).serialize()),
}
"""What each sends after it has shaken hands."""


async def pour(url: str, context: ssl.SSLContext, flood: Callable[[], Iterator[bytes]]) -> None:
    """Over one connection after the other."""
    parts = urlsplit(url)
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
            try:
                writer.write(PREFACE)
                frames = flood()
                while not writer.is_closing():
                    writer.write(b"".join(next(frames) for _ in range(AT_ONCE)))
                    await writer.drain()
            finally:
                writer.transport.abort()


async def keep_silent(url: str, address: str) -> None:
    """Connects, says nothing, and comes again when it is sent away."""
    parts = urlsplit(url)
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port, local_addr=(address, 0))
            try:
                await reader.read()
            finally:
                writer.transport.abort()


async def main() -> None:
    """Until SIGTERM."""
    # It warns of whatever is written to a connection that the other side has ended.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    url, authority, certificate, key, name = sys.argv[1:]
    if name == SILENT:
        silent = (keep_silent(url, f"127.0.1.{1 + number % ADDRESSES}") for number in range(SILENT_CONNECTIONS))
        await asyncio.gather(*silent)
    context = ssl.create_default_context(cafile=authority)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols([http2.NAME])
    await asyncio.gather(*(pour(url, context, FLOODS[name]) for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    asyncio.run(main())
