"""Pages over TLS, on real sockets: large ones come whole, those in the handshake keep nobody out, and a new certificate
is served without a new start."""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.http.answering import Page, Pages, Request, Stream, text_page
from edgeshare.http.web import CONNECTIONS_MAX, Terms
from sharemgr.cluster.config import Tls
from sharemgr.cluster.server.accepting import HANDSHAKES_PER_ADDRESS_MAX
from sharemgr.cluster.server.web_serving import web_serving
from tests.kit.apiserver.certificates import Authority
from tests.kit.pages.site_client import Client

LARGE = bytes(range(256)) * (32 << 10)
"""8 MiB: more than all that is between two programs keeps."""
NAME = "page.example"


class Site:
    """Pages that are served with the files of a folder."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.authority = Authority(folder)
        self.certificate, self.key = self.authority.issue("one", NAME, hosts=(f"DNS:{NAME}",))
        self.stack = stack
        self.port = 0

    async def serve(self, address: str = "127.0.0.1:0") -> None:
        pages: Pages = {"/": self.page, "/large": self.large, "/events": self.events}
        tls = Tls(certificate=self.certificate, private_key=self.key)
        serving = web_serving(address, tls, pages, Terms("here", CONNECTIONS_MAX))
        self.port = int((await self.stack.enter_async_context(serving)).rpartition(":")[2])

    async def page(self, _: Request) -> Page:
        return text_page(HTTPStatus.OK, "ok")

    async def large(self, _: Request) -> Page:
        return Page(HTTPStatus.OK, "text/plain", LARGE)

    async def events(self, _: Request) -> Stream:
        return Stream("text/event-stream", self._parts())

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        yield b"first\n"
        yield LARGE

    async def connect(self) -> Client:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=NAME))
        self.stack.callback(client.end)
        return client

    async def body(self, path: str) -> bytes:
        client = await self.connect()
        client.say(f"GET {path} HTTP/1.1\r\n\r\n".encode())
        return (await client.heard()).partition(b"\r\n\r\n")[2]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        yield Site(tmp_path, stack)


async def test_what_is_large_comes_whole(site: Site) -> None:
    await site.serve()
    assert await site.body("/") == b"ok\n"
    assert await site.body("/large") == LARGE
    assert await site.body("/events") == b"first\n" + LARGE


async def test_those_that_shake_no_hands_keep_nobody_out(site: Site) -> None:
    await site.serve()
    for _ in range(2 * HANDSHAKES_PER_ADDRESS_MAX):
        site.stack.enter_context(socket.create_connection(("127.0.0.1", site.port)))
    assert await site.body("/") == b"ok\n"


async def test_a_certificate_that_takes_the_place_of_another_is_served(site: Site, tmp_path: Path) -> None:
    await site.serve()

    async def served() -> bytes | None:
        tls = (await site.connect()).writer.get_extra_info("ssl_object")
        return bytes(tls.getpeercert(binary_form=True))

    before = await served()
    (tmp_path / "new").mkdir()
    other = Authority(tmp_path / "new")
    certificate, key = other.issue("one", NAME, hosts=(f"DNS:{NAME}",))
    site.authority = other
    key.replace(site.key)
    certificate.replace(site.certificate)
    async with asyncio.timeout(60):
        while True:
            try:
                assert await served() != before
                break
            except ssl.SSLError:
                # It is signed by the one before: the files' change was not looked at yet, of which nobody tells.
                await asyncio.sleep(0.05)


async def test_an_address_that_is_taken_is_said_with_the_setting_that_names_it(site: Site) -> None:
    await site.serve()
    with pytest.raises(Unavailable, match=f"here 127.0.0.1:{site.port}: cannot be listened on"):
        await site.serve(f"127.0.0.1:{site.port}")


async def test_files_that_cannot_be_used_are_said(site: Site) -> None:
    site.key.write_text("nonsense")
    with pytest.raises(InvalidRequest, match="private_key"):
        await site.serve()
