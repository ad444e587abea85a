"""Follows objects of the API server: a list, and then each change as it happens, read in a thread of its own.

The client's own informer keeps typed objects, of which a pod takes ten times as much as the fields that are needed of
it, and asks again at once where it is refused.
"""

import asyncio
import logging
import random
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from edgeshare.errors import Unavailable
from edgeshare.kube import Expired, Kube

logger = logging.getLogger(__name__)

Json = dict[str, Any]

T = TypeVar("T")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


def pause_s(failures: int) -> float:
    """How long to wait before asking again, after so many failures one after the other."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
    return longest * random.uniform(0.5, 1)


class Following(Generic[T]):
    """Follows what lies at one path, as a field selector picks it, keeping of each object what ``keep`` returns: that
    is called in the thread, and None is not kept.

    The others are called in the event loop: ``listed`` with all that is there, each time that it had to be listed;
    ``changed`` with ADDED, MODIFIED or DELETED, and the object."""

    def __init__(
        self,
        kube: Kube,
        path: str,
        selector: str,
        keep: Callable[[Json], T | None],
        listed: Callable[[list[T]], None],
        changed: Callable[[str, T], None],
    ) -> None:
        self._kube = kube
        self._path = path
        self._selector = selector
        self._keep = keep
        self._listed = listed
        self._changed = changed
        self._over = threading.Event()

    def start(self) -> None:
        """Begins. The thread ends with the process at the latest: it may be waiting for the API server."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name=f"follows {self._path}", daemon=True).start()

    def stop(self) -> None:
        """No more is told."""
        self._over.set()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        version, said, failures = "", "", 0
        while not self._over.is_set():
            try:
                if not version:
                    items, version = self._kube.objects(self._path, self._selector, self._keep)
                    self._tell(loop, self._listed, items)
                for change in self._kube.changes(self._path, self._selector, version):
                    version = str(change["object"]["metadata"]["resourceVersion"])
                    kept = self._keep(change["object"]) if change["type"] != "BOOKMARK" else None
                    if kept is not None:
                        self._tell(loop, self._changed, change["type"], kept)
                    if failures:
                        logger.info("%s is followed again", self._path)
                        said, failures = "", 0
                    if self._over.is_set():
                        return
            except (Unavailable, AttributeError, KeyError, TypeError, ValueError) as error:
                # All but the first: what was told is not as such objects are, and `keep` stumbled over it.
                if isinstance(error, Expired):
                    version = ""
                failures += 1
                if str(error) != said:
                    said = str(error)
                    logger.warning("%s is not followed: %s", self._path, error)
            # Also after a watch that only ended: an API server that ends each at once is not to be kept busy.
            self._over.wait(pause_s(failures))

    def _tell(self, loop: asyncio.AbstractEventLoop, whom: Callable[..., None], *what: object) -> None:
        # A loop that was closed meanwhile has nobody left to be told.
        if not self._over.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(whom, *what)
