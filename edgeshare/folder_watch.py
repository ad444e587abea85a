"""Changes in a folder: the kubelet's, where its socket and ours come and go, a configuration's, a Secret's."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from asyncinotify import Inotify, Mask

from edgeshare.waiting import Change, ended

logger = logging.getLogger(__name__)

CHANGES = Mask.CREATE | Mask.DELETE | Mask.MOVE | Mask.CLOSE_WRITE | Mask.ATTRIB | Mask.DELETE_SELF | Mask.MOVE_SELF
GONE = Mask.IGNORED | Mask.MOVE_SELF
"""The folder itself was taken away. (inotify(7))"""

SETTLE_S = 0.02
"""What comes within so long is told of once."""

LOOK_AGAIN_S = 60
"""Without any notice: where a folder is mounted, its removal gives none."""

FOLDER_RETRY_S = 1


class FolderWatch:
    """Says when something in a folder may have changed. The folder may come, go and come again."""

    def __init__(self, folder: Path, settle_s: float = SETTLE_S) -> None:
        """``settle_s``: how long it waits for more before it says so."""
        self._folder = folder
        self._settle_s = settle_s
        self._change = Change()

    def next_change(self) -> asyncio.Event:
        """Set at the next change, or now and then without one."""
        return self._change.next

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches while it is entered."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            await ended(task)

    async def _run(self) -> None:
        while True:
            try:
                with Inotify(sync_timeout=0) as inotify:
                    inotify.add_watch(self._folder, CHANGES)
                    # What came before it was watched.
                    self._change.tell()
                    await self._follow(inotify)
            except OSError as error:
                logger.debug("cannot watch %s: %s", self._folder, error)
            self._change.tell()
            await asyncio.sleep(FOLDER_RETRY_S)

    async def _follow(self, inotify: Inotify) -> None:
        """Until the folder goes."""
        while True:
            changes = []
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_S):
                    changes.append(await inotify.get())
                await asyncio.sleep(self._settle_s)
                changes.extend(iter(inotify.sync_get, None))
            self._change.tell()
            if any(change.mask & GONE for change in changes) or not self._folder.is_dir():
                return
