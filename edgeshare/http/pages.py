"""The pages that a part serves: its metrics, and whether it is well."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from edgeshare.http.prometheus import CONTENT_TYPE
from edgeshare.http.web import Page, Pages, text_page


def pages(exposition: Callable[[], Awaitable[bytes]], readiness: Callable[[], str] = lambda: "ok") -> Pages:
    """The page of each path. ``exposition`` is what Prometheus reads; ``readiness`` says in which way the part is
    ready; either may raise Unavailable."""

    async def metrics() -> Page:
        return Page(HTTPStatus.OK, CONTENT_TYPE, await exposition())

    async def well() -> Page:
        # The very event loop that the part works on has answered.
        return text_page(HTTPStatus.OK, "ok")

    async def ready() -> Page:
        return text_page(HTTPStatus.OK, readiness())

    return {"/metrics": metrics, "/healthz": well, "/readyz": ready}
