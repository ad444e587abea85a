"""What the manager serves over HTTP: its metrics, and whether it is well."""

import asyncio
from http import HTTPStatus
from time import monotonic

from edgeshare.contract.errors import Unavailable
from edgeshare.http.prometheus import CONTENT_TYPE
from edgeshare.http.web import Page, Pages, text_page
from sharemgr.node.metrics import exposition
from sharemgr.node.node import Node

FRESH_S = 0.5
"""Who asks more often gets the same page once more."""


def pages(node: Node) -> Pages:
    """The page of each path."""
    metrics = _Metrics(node)

    async def well() -> Page:
        # The very event loop that grants has answered.
        return text_page(HTTPStatus.OK, "ok")

    return {"/metrics": metrics.page, "/healthz": well, "/readyz": well}


def pages_standing_by(holder: str) -> Pages:
    """Those of a manager that waits for the end of another, process ``holder``: it is ready, for that is what an update
    waits for before it ends the other one."""
    text = f"ready to take over when the share manager with pid {holder} ends"

    async def ready() -> Page:
        return text_page(HTTPStatus.OK, text)

    async def metrics() -> Page:
        raise Unavailable(text)

    return {"/metrics": metrics, "/healthz": ready, "/readyz": ready}


class _Metrics:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._making = asyncio.Lock()
        self._made_s = -FRESH_S
        self._page = text_page(HTTPStatus.OK, "")

    async def page(self) -> Page:
        async with self._making:
            if monotonic() >= self._made_s + FRESH_S:
                status = await self._node.status()
                # A thread writes it down: with a hundred allocations that takes milliseconds.
                body = await asyncio.to_thread(exposition, status)
                self._page = Page(HTTPStatus.OK, CONTENT_TYPE, body)
                self._made_s = monotonic()
            return self._page
