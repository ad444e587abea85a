"""What is asked of the assigner and what it answers, whichever HTTP it comes by."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    """With its query."""
    body: bytes | None
    """None: it was too long."""


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    content_type: str
    body: bytes
    is_last: bool = False
    """The client had better ask on over another connection."""


Answering = Callable[[Asked], Answer | Coroutine[Any, Any, Answer]]
"""At once, where nothing is waited for: then nobody needs a task."""
