"""A client of pages over HTTP that does as the test says."""

import asyncio

SAFETY_S = 60
ASKED = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, said: bytes) -> None:
        self.writer.write(said)

    def end(self) -> None:
        self.writer.transport.abort()

    async def heard(self) -> bytes:
        """All that comes until the connection's end."""
        try:
            return await asyncio.wait_for(self.reader.read(), SAFETY_S)
        except ConnectionResetError:
            return b""

    async def status(self, said: bytes = ASKED) -> int:
        """That of the answer; 0: none came."""
        self.say(said)
        heard = await self.heard()
        return int(heard.split(b" ", 2)[1]) if heard else 0
