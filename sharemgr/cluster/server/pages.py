"""What the assigner serves over HTTP beside its verbs: its metrics, and whether it is well."""

import asyncio
from collections.abc import Callable, Iterable
from http import HTTPStatus

from prometheus_client.core import Metric

from edgeshare.http.prometheus import CONTENT_TYPE, exposition
from edgeshare.http.web import Page, Pages, text_page


def pages(families: Callable[[], Iterable[Metric]], readiness: Callable[[], str]) -> Pages:
    """The page of each path; ``readiness`` says in which way it is ready, or raises Unavailable."""

    async def metrics() -> Page:
        # A thread writes them down, so that no verb waits; what they are, is looked at here.
        now = list(families())
        return Page(HTTPStatus.OK, CONTENT_TYPE, await asyncio.to_thread(exposition, now))

    async def well() -> Page:
        # The very event loop that answers verbs has answered.
        return text_page(HTTPStatus.OK, "ok")

    async def ready() -> Page:
        return text_page(HTTPStatus.OK, readiness())

    return {"/metrics": metrics, "/healthz": well, "/readyz": ready}
