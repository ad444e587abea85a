"""Serves pages over TLS, behind what takes connections in."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic_ns

from edgeshare.contract.address import join_address, parse_address
from edgeshare.http.answering import Pages
from edgeshare.http.web import HEADER_BYTES_MAX, Terms, Web
from sharemgr.cluster.config import Tls
from sharemgr.cluster.server import http1
from sharemgr.cluster.server.accepting import Acceptor
from sharemgr.cluster.server.certificates import Certificates
from sharemgr.cluster.server.endings import Endings, Telling
from sharemgr.cluster.server.serving import listener


@asynccontextmanager
async def web_serving(address: str, tls: Tls, pages: Pages, terms: Terms) -> AsyncIterator[str]:
    """Serves the pages while it is entered; yields the address. Connections go by what the files hold when they come.
    Raises InvalidRequest for files that cannot be used, Unavailable where it cannot listen."""
    certificates = Certificates(tls, (http1.NAME,))
    web = Web(address, pages, terms)

    def speaking(_: asyncio.Transport, tell: Telling) -> asyncio.Protocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(HEADER_BYTES_MAX), web.answer)

    acceptor = Acceptor(lambda _: "", speaking, Endings(lambda _: None, monotonic_ns))
    acceptor.context = certificates.context

    async def use(context: ssl.SSLContext) -> None:
        acceptor.context = context

    with listener(address, terms.setting) as listening:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(acceptor.accept(listening)), group.create_task(certificates.keep(use))]
            try:
                yield join_address(parse_address(address)[0], listening.getsockname()[1])
            finally:
                web.end_streams()
                for task in tasks:
                    task.cancel()
