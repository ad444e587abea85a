"""What the manager serves over HTTP: its metrics, and whether it is well."""

import asyncio
from time import monotonic

from edgeshare.contract.errors import Unavailable
from edgeshare.http.answering import Pages
from edgeshare.http.pages import pages
from sharemgr.node.metrics import exposition
from sharemgr.node.node import Node

FRESH_S = 0.5
"""Who asks more often gets the same page once more."""


def pages_of(node: Node) -> Pages:
    """The page of each path."""
    return pages(_Exposition(node).now)


def pages_standing_by(holder: str) -> Pages:
    """The pages of a manager that waits for the end of another, process ``holder``: it is ready, for that is what an
    update waits for before it ends the other one."""
    text = f"ready to take over when the share manager with pid {holder} ends"

    async def nothing() -> bytes:
        raise Unavailable(text)

    def stands_by() -> str:
        return text

    return pages(nothing, stands_by, stands_by)


class _Exposition:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._making = asyncio.Lock()
        self._made_s = -FRESH_S
        self._body = b""

    async def now(self) -> bytes:
        async with self._making:
            if monotonic() >= self._made_s + FRESH_S:
                status = await self._node.status()
                # A thread writes it down: with a hundred allocations that takes milliseconds.
                self._body = await asyncio.to_thread(exposition, status)
                self._made_s = monotonic()
            return self._body
