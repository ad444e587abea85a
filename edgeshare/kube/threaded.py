"""The API server, asked from an event loop: each call, and each wait for the next line of a watch, in a thread of its
own. So asks who does without the 18 MiB of the Kubernetes client. The assigner asks by ``Calls``, without threads: they
take turns in running Python, and each answer to kube-scheduler would wait for what one reads meanwhile (5 ms at a
time)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from edgeshare import detached
from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import CALL_TIMEOUT_S, Kube

T = TypeVar("T")
P = ParamSpec("P")


async def ask(call: Callable[P, T], *what: P.args, **more: P.kwargs) -> T:
    """What a call of Kube returns. Raises what it does, and Unavailable after CALL_TIMEOUT_S."""
    async with in_time():
        return await detached.call(partial(call, *what, **more))


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Holds all that is asked within to the time of one call: raises Unavailable after CALL_TIMEOUT_S."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            yield
    except TimeoutError as error:
        raise Unavailable(f"the API server does not answer within {CALL_TIMEOUT_S} s") from error


class InThreads:
    """What is listed and watched of a Kube, as Calls does it."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def objects(
        self, path: str, selector: str, keep: Callable[[dict[str, Any]], T | None]
    ) -> tuple[list[T], str]:
        """See Kube.objects; ``keep`` is called in the thread."""
        return await detached.call(partial(self._kube.objects, path, selector, keep))

    async def changes(
        self, path: str, selector: str, version: str, tell: Callable[[dict[str, Any]], None], shape: Any = Any
    ) -> None:
        """See Calls.changes. Who ends it ends the watch, too, once a line of that has come that is waited for."""
        changes = self._kube.changes(path, selector, version)
        while (change := await detached.call(lambda: next(changes, None))) is not None:
            tell(change)
