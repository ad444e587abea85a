"""What runs in the browser, as files, and what it may do there."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from importlib import resources
from pathlib import PurePath

from edgeshare.http.answering import Page, Pages, Request

FOLDER = "browser"
"""Beside this module."""

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

FILES = {"/": "page.html", **{f"/{name}": name for name in ("page.css", "page.js", "device.js", "elements.js")}}
"""What the page is made of, by the path that it is served under."""

LOGIN = "login.html"
"""In its place to who is not let in."""

LOGIN_FILES = {"/login.js": "login.js"}
"""What that takes beside the page's."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Only its own files, nothing inline, and no text that is taken for HTML or for a program (Content Security Policy
Level 3, Trusted Types). The image is the empty icon."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def file_page(name: str, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Page:
    """An answer with one of the files."""
    path = resources.files(__package__).joinpath(FOLDER, name)
    return Page(status, f"{TYPES[PurePath(name).suffix]}; charset=utf-8", path.read_bytes(), headers)


def file_pages(files: Mapping[str, str]) -> Pages:
    """All of some, each by the path that it is served under."""
    return {path: _served(file_page(name)) for path, name in files.items()}


def _served(page: Page) -> Callable[[Request], Awaitable[Page]]:
    async def file(_: Request) -> Page:
        return page

    return file
