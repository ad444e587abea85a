"""What the plugin serves over HTTP: its metrics, and whether it is well."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from deviceplugin.metrics import Figures, exposition
from edgeshare.contract.errors import Unavailable
from edgeshare.http.prometheus import CONTENT_TYPE
from edgeshare.http.web import Page, Pages, text_page


def pages(figures: Callable[[], Figures], not_ready: Callable[[], str]) -> Pages:
    """The page of each path; ``not_ready`` says why the kubelet has no list of ours, and nothing where it has."""

    async def metrics() -> Page:
        # A thread writes it down: the kubelet's calls do not wait for it.
        return Page(HTTPStatus.OK, CONTENT_TYPE, await asyncio.to_thread(exposition, figures()))

    async def well() -> Page:
        # The very event loop that the kubelet's calls run on has answered.
        return text_page(HTTPStatus.OK, "ok")

    async def ready() -> Page:
        reason = not_ready()
        if reason:
            raise Unavailable(reason)
        return text_page(HTTPStatus.OK, "ok")

    return {"/metrics": metrics, "/healthz": well, "/readyz": ready}
