"""Follows objects of the API server in the event loop: with threads, which take turns in running Python, each answer to
kube-scheduler would wait for what a thread reads meanwhile (5 ms at a time)."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeVar

from edgeshare.errors import Unavailable
from edgeshare.following import Json, pause_s
from edgeshare.kube import Expired
from edgeshare.kube_calls import Calls

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAGE = 500
"""Objects of a list that are read at a time: a cluster has tens of thousands of pods, and each page is a call. As in
client-go."""


async def follow(
    calls: Calls,
    path: str,
    selector: str,
    keep: Callable[[Json], T | None],
    listed: Callable[[list[T]], None],
    changed: Callable[[str, T], None],
) -> None:
    """As edgeshare.following.Following does, until it is cancelled."""
    version, said, failures = "", "", 0
    while True:
        try:
            if not version:
                items, version = await calls.objects(path, selector, keep, PAGE)
                listed(items)
            async with aclosing(calls.changes(path, selector, version)) as changes:
                async for change in changes:
                    version = str(change["object"]["metadata"]["resourceVersion"])
                    kept = keep(change["object"]) if change["type"] != "BOOKMARK" else None
                    if kept is not None:
                        changed(change["type"], kept)
                    if failures:
                        logger.info("%s is followed again", path)
                        said, failures = "", 0
                    # What has been read already is told without a pause, and there may be much of it.
                    await asyncio.sleep(0)
        except (Unavailable, AttributeError, KeyError, TypeError, ValueError) as error:
            # All but the first: what was told is not as such objects are, and `keep` stumbled over it.
            if isinstance(error, Expired):
                version = ""
            failures += 1
            if str(error) != said:
                said = str(error)
                logger.warning("%s is not followed: %s", path, error)
        # Also after a watch that only ended: an API server that ends each at once is not to be kept busy.
        await asyncio.sleep(pause_s(failures))
