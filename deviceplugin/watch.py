"""Changes in a folder: the kubelet's, where its socket and ours come and go, and the configuration's."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from watchfiles import awatch

from deviceplugin.waiting import first_of

logger = logging.getLogger(__name__)

STEP_MS = 100
"""How often the watching thread looks whether inotify told it of something: each look wakes a processor."""

LOOK_AGAIN_MS = 5_000
"""Without any notice: for a folder that was taken away, and for what inotify lost."""

FOLDER_RETRY_S = 1


class FolderWatch:
    """Says when something in a folder may have changed. The folder may come, go and come again."""

    def __init__(self, folder: Path, step_ms: int = STEP_MS) -> None:
        """``step_ms``: how long it may take to say so."""
        self._folder = folder
        self._step_ms = step_ms
        self._change = asyncio.Event()

    def next_change(self) -> asyncio.Event:
        """Set at the next change, or now and then without one."""
        return self._change

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches while it is entered."""
        stop = asyncio.Event()
        task = asyncio.create_task(self._run(stop))
        try:
            yield
        finally:
            stop.set()
            await task

    async def _run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                async for _ in awatch(
                    self._folder,
                    watch_filter=None,
                    debounce=self._step_ms,
                    step=self._step_ms,
                    stop_event=stop,
                    rust_timeout=LOOK_AGAIN_MS,
                    yield_on_timeout=True,
                    recursive=False,
                ):
                    self._tell()
                    if not self._folder.is_dir():
                        break
            except OSError as error:
                logger.debug("cannot watch %s: %s", self._folder, error)
            self._tell()
            if not stop.is_set():
                await first_of(stop, timeout_s=FOLDER_RETRY_S)

    def _tell(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
