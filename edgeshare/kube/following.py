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

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import Expired
from edgeshare.trouble import Trouble

logger = logging.getLogger(__name__)

Json = dict[str, Any]

T = TypeVar("T")

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0

PUT_OFF_S = 10.0
"""A list that is asked for anew is put off for so long at most, by chance: with an API server that starts again the
watches of all nodes end in one moment, and it may go on with none of them."""

STUMBLES = (Unavailable, AttributeError, KeyError, TypeError, ValueError)
"""All but the first: what was told is not as such objects are, and `keep` stumbled over it."""


def pause_s(failures: int) -> float:
    """How long to wait before asking again, after so many failures one after the other. Also after a watch that only
    ended: an API server that ends each at once is not to be kept busy."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
    return longest * random.uniform(0.5, 1)


class Progress:
    """How far what lies at a path was followed."""

    def __init__(self, path: str, logger: logging.Logger) -> None:
        self.version = ""
        """What comes after it is to be watched; empty: to be listed."""
        self._trouble = Trouble(logger, f"{path} is not followed", f"{path} is followed again")

    @property
    def failures(self) -> int:
        """How many there were, one after the other."""
        return self._trouble.count

    def take(self, change: Json, keep: Callable[[Json], T | None]) -> T | None:
        """What is kept of a change. Raises what ``keep`` does, and one of STUMBLES for what is no change."""
        self.version = str(change["object"]["metadata"]["resourceVersion"])
        return keep(change["object"]) if change["type"] != "BOOKMARK" else None

    def goes_on(self) -> None:
        """A change was taken in."""
        self._trouble.over()

    def fail(self, error: Exception) -> None:
        """Following broke off: the log has it once."""
        if isinstance(error, Expired):
            self.version = ""
        self._trouble.fails(error)


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
        *,
        uniform: Callable[[float, float], float] = random.uniform,
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    ) -> None:
        """``uniform`` is chance, and ``wait`` time: it returns when the event is set, or after so many seconds."""
        self._kube = kube
        self._path = path
        self._selector = selector
        self._keep = keep
        self._listed = listed
        self._changed = changed
        self._uniform = uniform
        self._wait = wait
        self._over = threading.Event()
        self._behind = False
        """Whether it has to be listed anew, which was put off."""
        self._at_once = threading.Event()
        """It is to be put off no longer."""

    def start(self) -> None:
        """Begins. The thread ends with the process at the latest: it may be waiting for the API server."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, args=(loop,), name=f"follows {self._path}", daemon=True).start()

    def stop(self) -> None:
        """No more is told."""
        self._over.set()
        self._at_once.set()

    def hurry(self) -> bool:
        """To be called in the event loop by who needs it now: a list that was put off is asked for at once. Returns
        whether there is one that ``listed`` was not called with yet."""
        self._at_once.set()
        return self._behind

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        progress = Progress(self._path, logger)
        is_known = False
        while not self._over.is_set():
            try:
                if not progress.version:
                    items, progress.version = self._kube.objects(self._path, self._selector, self._keep)
                    self._tell(loop, self._catch_up, items)
                    is_known = True
                for change in self._kube.changes(self._path, self._selector, progress.version):
                    kept = progress.take(change, self._keep)
                    if kept is not None:
                        self._tell(loop, self._changed, change["type"], kept)
                    progress.goes_on()
                    if self._over.is_set():
                        return
            except STUMBLES as error:
                progress.fail(error)
            if is_known and not progress.version:
                self._put_off(progress.failures)
                is_known = False
            else:
                self._wait(self._over, pause_s(progress.failures))

    def _put_off(self, failures: int) -> None:
        self._at_once.clear()
        self._behind = True
        if not self._over.is_set():
            self._wait(self._at_once, max(pause_s(failures), self._uniform(0, PUT_OFF_S)))

    def _catch_up(self, items: list[T]) -> None:
        self._behind = False
        self._listed(items)

    def _tell(self, loop: asyncio.AbstractEventLoop, whom: Callable[..., None], *what: object) -> None:
        # A loop that was closed meanwhile has nobody left to be told.
        if not self._over.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(whom, *what)
