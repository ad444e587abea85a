"""The API server, asked from an event loop: each call in a thread of its own, and waited for no longer than a call may
take, however slowly its answer comes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from edgeshare import detached
from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import CALL_TIMEOUT_S

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
