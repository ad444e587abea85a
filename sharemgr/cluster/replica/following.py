"""Follows objects of the API server in the event loop: with threads, which take turns in running Python, each answer to
kube-scheduler would wait for what a thread reads meanwhile (5 ms at a time)."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, TypeVar

from edgeshare.contract.errors import InvalidRequest
from edgeshare.kube.calls import Calls
from edgeshare.kube.following import STUMBLES, Json, Progress, pause_s

logger = logging.getLogger(__name__)

T = TypeVar("T")


def read(parse: Callable[[object], T], thing: Json) -> T | None:
    """What is kept of an object; None, and a line in the log, where it is no such thing."""
    try:
        return parse(thing)
    except InvalidRequest as error:
        # No API server has such a thing; were the rest not read on, nobody would get a GPU.
        logger.error("left out: %s", error)
        return None


async def follow(
    calls: Calls,
    path: str,
    selector: str,
    keep: Callable[[Json], T | None],
    listed: Callable[[list[T]], None],
    changed: Callable[[str, T], None],
    shape: Any = Any,
) -> None:
    """As edgeshare.kube.following.Following does, until it is cancelled. ``shape`` is of what ``keep`` looks at; that
    gets more all the same of what was listed."""
    progress = Progress(path, logger)
    while True:
        try:
            if not progress.version:
                items, progress.version = await calls.objects(path, selector, keep)
                listed(items)
            async with aclosing(calls.changes(path, selector, progress.version, shape)) as changes:
                async for change in changes:
                    kept = progress.take(change, keep)
                    if kept is not None:
                        changed(change["type"], kept)
                    progress.goes_on()
        except STUMBLES as error:
            progress.fail(error)
        await asyncio.sleep(pause_s(progress.failures))
