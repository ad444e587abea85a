"""What is asked of the assigner and what it answers, whichever HTTP it comes by."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asked:
    """A request."""

    method: str
    path: str
    """With its query."""
    body: bytes | None
    """None: it was too long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    status: int
    content_type: str
    body: bytes
    is_last: bool = False
    """The client had better ask on over another connection."""


Answering = Callable[[Asked], Awaitable[Answer]]
