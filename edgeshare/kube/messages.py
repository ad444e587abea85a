"""What is asked of the API server and what it answers, whoever asks: paths, queries, errors."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgeshare.contract.errors import Unavailable

Query = list[tuple[str, str]]

WATCH_S = 240
"""A watch ends after so long and goes on with a new one: one whose connection is dead is not waited on for ever."""

PAGE = 500
"""Objects of a list that are asked for at a time, as in client-go (tools/pager): a cluster has tens of thousands of
pods, and each page is a call."""

OK = 200
NOT_FOUND = 404
REQUEST_TIMEOUT = 408
CONFLICT = 409
GONE = 410


class Expired(Unavailable):
    """What changed since that version is not known any more: list anew."""


class Refused(Unavailable):
    """The API server has answered, and changed nothing."""


class Failed(Unavailable):
    """The API server has answered that it could not. What was asked for may have been done all the same."""


class Conflicting(Refused):
    """The object is another one by now, or a field is somebody else's: read it anew."""


def read_token(path: Path) -> str:
    """What a token's file holds. Raises Unavailable where that is none."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the token {path} cannot be read: {error}") from error
    # It becomes a header, in which the end of a line would begin another.
    if not token or not token.isprintable():
        raise Unavailable(f"{path} holds no token")
    return token


def pod_path(namespace: str, name: str) -> str:
    """Where a pod lies."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def no_node(name: str) -> str:
    """What is said where it was asked for a node that it does not have."""
    return f"the API server has no node {name}: set the node's name as it is registered"


def apply_query(manager: str, force: bool) -> Query:
    """What says who applies, and whether over others."""
    return [("fieldManager", manager), ("force", "true" if force else "false")]


def page_query(selector: str, following: str) -> Query:
    """What asks for a page of what a field selector picks: the first, or the one that the page before it named."""
    query = [("fieldSelector", selector), ("limit", str(PAGE))]
    return query + ([("continue", following)] if following else [])


def check_list(path: str, status: int, content: bytes) -> None:
    """Raises Expired, Refused or Unavailable where a page of a list was not answered with. ``content`` says why."""
    if status == GONE:
        raise Expired(f"the API server has a list no more ({path}), which changed too much while it was read")
    if parse_answer("GET", path, status, content) is None:
        raise Unavailable(f"the API server has nothing at {path}: apply what the chart installs")


def watch_query(selector: str, version: str) -> Query:
    """What asks for all that happens after a version."""
    query = [("watch", "1"), ("fieldSelector", selector), ("resourceVersion", version)]
    return [*query, ("allowWatchBookmarks", "1"), ("timeoutSeconds", str(WATCH_S))]


def check_watch(path: str, version: str, status: int) -> None:
    """Raises Expired or Unavailable where a watch was not begun."""
    if status == GONE:
        raise Expired(f"the API server cannot be watched ({path}): version {version} is too old")
    if status != OK:
        raise Unavailable(f"the API server refuses a watch of {path}: {status}")


def parse_change(path: str, line: bytes) -> dict[str, Any]:
    """A line of a watch. Raises Expired or Unavailable where it is its end."""
    try:
        change: dict[str, Any] = json.loads(line)
        if change.get("type") != "ERROR":
            return change
        code, message = (change["object"].get(key) for key in ("code", "message"))
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise Unavailable(f"a watch of {path} broke off: {error}") from error
    raise (Expired if code == GONE else Unavailable)(f"the API server ends a watch of {path}: {code} {message}")


def parse_answer(
    method: str, path: str, status: int, content: bytes, read: Callable[[bytes], Any] = json.loads
) -> dict[str, Any] | None:
    """The object that an API server answered with; None where it has nothing at that path. ``read`` reads JSON, or
    raises ValueError. Raises Refused, Conflicting, or Failed; Unavailable where something else answers."""
    if status == NOT_FOUND:
        return None
    if not 200 <= status < 300:
        raise _kind(status)(f"the API server refuses {method} {path}: {status} {_message(content)}")
    try:
        answer = read(content)
    except ValueError as error:
        raise Unavailable(f"what answers {method} {path} is no API server: {_message(content)}") from error
    if not isinstance(answer, dict):
        raise Unavailable(f"what answers {method} {path} is no API server: {_message(content)}")
    return answer


def _kind(status: int) -> type[Unavailable]:
    if status == CONFLICT:
        return Conflicting
    return Refused if 400 <= status < 500 and status != REQUEST_TIMEOUT else Failed


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")
