"""Follows objects of the API server: a list, and then each change as it happens.

The client's own informer keeps typed objects, of which a pod takes ten times as much as the fields that are needed of
it, and asks again at once where it is refused.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.kube.messages import Expired
from edgeshare.log_trouble import Trouble
from edgeshare.waiting import first_of

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


class Lister(Protocol):
    """Who asks the API server: ``Calls``, which has a connection for each watch in the event loop, or ``InThreads``."""

    async def objects(self, path: str, selector: str, keep: Callable[[Json], T | None]) -> tuple[list[T], str]:
        """See Kube.objects."""

    async def changes(self, path: str, selector: str, version: str, tell: Callable[[Json], None], shape: Any) -> None:
        """See Calls.changes."""


class PutOff:
    """Whether a list that was asked for before is asked for anew, at a moment by chance unless somebody needs it."""

    def __init__(self, uniform: Callable[[float, float], float] = random.uniform) -> None:
        """``uniform`` is chance."""
        self.is_behind = False
        """There is one to come."""
        self._uniform = uniform
        self._at_once = asyncio.Event()

    def hurry(self) -> bool:
        """To be called by who needs it now. Returns whether there is one to come."""
        self._at_once.set()
        return self.is_behind

    async def wait(self, least_s: float) -> None:
        """Until it is to be asked for."""
        self._at_once.clear()
        self.is_behind = True
        await pause(max(least_s, self._uniform(0, PUT_OFF_S)), self._at_once)


def pause_s(failures: int) -> float:
    """How long to wait before asking again, after so many failures one after the other. Also after a watch that only
    ended: an API server that ends each at once is not to be kept busy."""
    longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures, 10))
    return longest * random.uniform(0.5, 1)


async def pause(seconds: float, *over: asyncio.Event) -> None:
    """Returns after so long, or when one of the events is set."""
    if over:
        await first_of(*over, timeout_s=seconds)
    else:
        await asyncio.sleep(seconds)


def read(parse: Callable[[object], T], thing: Json) -> T | None:
    """What is kept of an object; None, and a line in the log, where it is no such thing."""
    try:
        return parse(thing)
    except InvalidRequest as error:
        # No API server has such a thing; were the rest not read on, nobody would get a GPU.
        logger.error("left out: %s", error)
        return None


async def follow(
    lister: Lister,
    path: str,
    selector: str,
    keep: Callable[[Json], T | None],
    listed: Callable[[list[T]], None],
    changed: Callable[[str, T], None],
    shape: Any = Any,
    put_off: PutOff | None = None,
) -> None:
    """Follows what lies at one path, as a field selector picks it, until it is cancelled, keeping of each object what
    ``keep`` returns; None is not kept. ``shape`` is of what that looks at; it gets more all the same of what was
    listed. ``listed`` is called with all that is there, each time that it had to be listed; ``changed`` with ADDED,
    MODIFIED or DELETED, and the object. With ``put_off`` a list anew is."""
    trouble = Trouble(logger, f"{path} is not followed", f"{path} is followed again")
    # What comes after it is to be watched; empty: to be listed.
    version, is_known = "", False

    def tell(change: Json) -> None:
        nonlocal version
        version = str(change["object"]["metadata"]["resourceVersion"])
        kept = keep(change["object"]) if change["type"] != "BOOKMARK" else None
        if kept is not None:
            changed(change["type"], kept)
        trouble.over()

    while True:
        try:
            if not version:
                items, version = await lister.objects(path, selector, keep)
                is_known = True
                if put_off is not None:
                    put_off.is_behind = False
                listed(items)
            await lister.changes(path, selector, version, tell, shape)
        except STUMBLES as error:
            if isinstance(error, Expired):
                version = ""
            trouble.fails(error)
        if put_off is not None and is_known and not version:
            is_known = False
            await put_off.wait(pause_s(trouble.count))
        else:
            await pause(pause_s(trouble.count))
