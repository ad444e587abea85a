"""Takes in a changed configuration: at SIGHUP, when its file changed, and when the node's label asks for another."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from deviceplugin.cluster.node import Node
from deviceplugin.live_config import ChosenName, Settings
from deviceplugin.node_events import NodeEvents, Reason
from edgeshare.contract.errors import EdgeshareError, Unavailable
from edgeshare.folder_watch import FolderWatch
from edgeshare.waiting import first_of

logger = logging.getLogger(__name__)

SETTLE_S = 1.0
"""A changed ConfigMap takes the kubelet a minute to bring: this is soon enough, and a file that is written in place is
whole by then."""


class Reloading:
    """Keeps the configuration as its file and the node's label say. What is wrong is told, and changes nothing."""

    def __init__(self, path: Path | None, settings: Settings, chosen: ChosenName, node_events: NodeEvents) -> None:
        self._path = path
        self._settings = settings
        self._chosen = chosen
        self._node_events = node_events

    async def choose_at_start(self, node: Node | None) -> None:
        """Goes over to this node's config: the one that it had, or else, the first time, its label's."""
        if node is None:
            return
        name = self._chosen.read()
        if name:
            # A node must come up without the API server; a label that was changed meanwhile is soon seen.
            self._choose(name)
            return
        try:
            await self.choose(node)
        except Unavailable as error:
            logger.warning("config '%s' holds until the node's label is known: %s", self._settings.name, error)

    async def choose(self, node: Node) -> None:
        """Goes over to the config that the node's label asks for. Raises Unavailable where that cannot be known."""
        name = await node.config_name()
        self._choose(name)
        self._chosen.write(name)

    async def run(self, stop: asyncio.Event, hangup: asyncio.Event, ask_node: Callable[[], None]) -> None:
        """Reads the file anew each time that it changed, and at ``hangup``; then ``ask_node`` has its label asked for,
        too."""
        async with AsyncExitStack() as stack:
            # The folder, not the file: in a mounted ConfigMap that is a link to one below `..data`, a link too, and
            # that one alone is exchanged.
            watch = FolderWatch(self._path.parent, SETTLE_S) if self._path else None
            if watch is not None:
                await stack.enter_async_context(watch.running())
            read: bytes | None = None
            while not stop.is_set():
                changes = [watch.next_change()] if watch is not None else []
                await first_of(stop, hangup, *changes)
                content = _content(self._path)
                if stop.is_set() or (content == read and not hangup.is_set()):
                    continue
                if hangup.is_set():
                    logger.info("SIGHUP: reading the configuration anew")
                hangup.clear()
                read = content
                self._take_in(Reason.CONFIG_REFUSED, self._settings.reload)
                ask_node()

    def _choose(self, name: str) -> None:
        # Also where it holds already: if another one was refused, that is over.
        self._take_in(Reason.CONFIG_UNKNOWN, lambda: self._settings.choose(name))

    def _take_in(self, reason: Reason, change: Callable[[], object]) -> None:
        try:
            change()
        except EdgeshareError as error:
            self._node_events.tell(reason, [f"config '{self._settings.name}' holds as it was: {error}"])
        else:
            self._node_events.tell(reason, [])


def _content(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path is not None else None
    except OSError:
        # Reading it as a configuration says why.
        return None
