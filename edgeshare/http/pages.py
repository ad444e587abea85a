"""The pages that a part serves: its metrics, and whether it is well."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from edgeshare.http.answering import Page, Pages, Request, text_page
from edgeshare.http.prometheus import CONTENT_TYPE


def ok() -> str:
    """Of a part that has nothing else to say."""
    return "ok"


def pages(
    exposition: Callable[[], Awaitable[bytes]], ready: Callable[[], str] = ok, well: Callable[[], str] = ok
) -> Pages:
    """The page of each path. ``exposition`` is what Prometheus reads; ``ready`` and ``well`` say in which way the part
    is so. Each may raise Unavailable."""

    async def metrics(_: Request) -> Page:
        return Page(HTTPStatus.OK, CONTENT_TYPE, await exposition())

    async def well_page(_: Request) -> Page:
        # The very event loop that the part works on has answered.
        return text_page(HTTPStatus.OK, well())

    async def ready_page(_: Request) -> Page:
        return text_page(HTTPStatus.OK, ready())

    return {"/metrics": metrics, "/healthz": well_page, "/readyz": ready_page}
