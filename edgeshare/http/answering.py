"""What a page may go by, and what is answered."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from edgeshare.contract.errors import EdgeshareError, Forbidden, InvalidRequest, Unauthenticated, Unavailable

STATUSES: Mapping[type[EdgeshareError], HTTPStatus] = {
    InvalidRequest: HTTPStatus.BAD_REQUEST,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    Forbidden: HTTPStatus.FORBIDDEN,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""With which a page's error is answered, in its words."""


@dataclass(frozen=True)
class Request:
    """What a page may go by."""

    query: str = ""
    """What follows the path's question mark."""
    headers: Sequence[tuple[str, str]] = ()
    """Each with its name in small letters."""


@dataclass(frozen=True)
class Page:
    """An answer."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Beside those that each answer has."""


def text_page(status: HTTPStatus, text: str, **headers: str) -> Page:
    """An answer in a line."""
    return Page(status, "text/plain; charset=utf-8", f"{text}\n".encode(), headers)


@dataclass(frozen=True)
class Stream:
    """An answer that goes on until its parts are over or the other side has gone. Who has not taken a part in time is
    sent away; the next part is only asked for when the one before is taken, so that no more than one waits."""

    content_type: str
    parts: AsyncGenerator[bytes, None]


Pages = Mapping[str, Callable[[Request], Awaitable[Page | Stream]]]
"""What makes the page of each path. It may raise what STATUSES names."""


def error_page(error: EdgeshareError) -> Page:
    """What is answered with an error that STATUSES names."""
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    if status is HTTPStatus.UNAUTHORIZED:
        return text_page(status, str(error), **{"WWW-Authenticate": "Bearer"})
    return text_page(status, str(error))
