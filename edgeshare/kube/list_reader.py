"""A list of the API server, read while it arrives, object by object: no more of it is in memory than what is kept of
each, and the one that is being read. The importer of ijson."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import ijson

from edgeshare.contract.errors import Unavailable

T = TypeVar("T")

CHUNK_BYTES = 16 * 1024
"""Are read at a time."""

OBJECT_BYTES_MAX = 8 * 1024 * 1024
"""May come without one more object's end. etcd takes requests of 1.5 MiB (its --max-request-bytes)."""

OBJECTS_MAX = 1_000_000
"""More than six times as many as there are pods in the largest cluster that Kubernetes is made for (150,000:
kubernetes.io, "Considerations for large clusters")."""


class ListReader(Generic[T]):
    """What is kept of a list: one page after the other, until it is whole."""

    def __init__(self, path: str, keep: Callable[[dict[str, Any]], T | None]) -> None:
        """``path`` is where the list is; of each of its objects what ``keep`` returns is kept, None is not."""
        self.kept: list[T] = []
        self.following = ""
        """What the next page is asked for by; empty before the first, and after the last."""
        self.is_whole = False
        """Whether the last page was read to its end."""
        self._path = path
        self._keep = keep
        self._version = ""
        self._counted = 0
        """Objects and pages: a list of empty ones is to have an end, too."""

    @property
    def version(self) -> str:
        """From which what follows the list is watched."""
        return self._version or "0"

    @contextmanager
    def page(self) -> Iterator[Callable[[bytes], None]]:
        """Yields what takes a page's bytes, in their order, until it is left. Both raise Unavailable for what is no
        page of a list, and for a list without an end; what is yielded, also whatever ``keep`` does."""
        try:
            page = _Page(self._path)
            yield lambda chunk: self._take(page.objects_in(chunk))
            page.end()
        except ijson.JSONError as error:
            why = " ".join(str(error).split())[:200]
            raise Unavailable(f"what answers GET {self._path} is no list, or breaks off in it: {why}") from error
        self._count(1)
        self._version, self.following = page.version, page.following
        self.is_whole = not self.following

    def _take(self, objects: list[dict[str, Any]]) -> None:
        self._count(len(objects))
        self.kept.extend(kept for kept in map(self._keep, objects) if kept is not None)

    def _count(self, more: int) -> None:
        self._counted += more
        if self._counted > OBJECTS_MAX:
            raise Unavailable(f"the list at {self._path} has no end: more than {OBJECTS_MAX} objects and pages")


class _Page:
    """One page, as ijson reads it."""

    def __init__(self, path: str) -> None:
        self.version = ""
        self.following = ""
        self._path = path
        self._events = ijson.sendable_list()
        self._head = ijson.parse_coro(self._events, use_float=True)
        self._unseen = {"metadata", "items"}
        """What makes it a list. An API server writes them in that order, so that of a page little is read twice."""
        self._objects = ijson.sendable_list()
        self._body = ijson.items_coro(self._objects, "items.item", use_float=True)
        self._unfinished_bytes = 0

    def objects_in(self, chunk: bytes) -> list[dict[str, Any]]:
        """The objects that end in this chunk of the page."""
        if self._unseen:
            self._head.send(chunk)
            self._look_at_head()
        self._body.send(chunk)
        objects, self._objects[:] = list(self._objects), []
        self._unfinished_bytes = 0 if objects else self._unfinished_bytes + len(chunk)
        if self._unfinished_bytes > OBJECT_BYTES_MAX:
            raise Unavailable(f"an object of the list at {self._path} has no end: more than {OBJECT_BYTES_MAX} bytes")
        for each in objects:
            if not isinstance(each, dict):
                raise Unavailable(f"the list at {self._path} has a {type(each).__name__} where an object is expected")
        return objects

    def end(self) -> None:
        """No more of it comes."""
        self._body.close()
        if self._unseen:
            raise Unavailable(f"what answers GET {self._path} is no list: it has no {' and no '.join(self._unseen)}")

    def _look_at_head(self) -> None:
        for prefix, event, value in self._events:
            match prefix, event:
                case "metadata.resourceVersion", "string":
                    self.version = value
                case "metadata.continue", "string":
                    self.following = value
                case ("metadata", "end_map") | ("items", "start_array" | "null"):
                    self._unseen.discard(prefix)
        del self._events[:]
