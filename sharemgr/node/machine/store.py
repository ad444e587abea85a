"""The allocations on disk: what a restart of the manager, or of the node, must not lose."""

import json
import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from edgeshare.bounded_file import read
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.units import MIB
from edgeshare.v1.allocations_pb2 import Allocation
from sharemgr.node.machine.files import put, write_json

logger = logging.getLogger(__name__)

FILE_NAME = "allocations.json"
VERSION = 1

BYTES_MAX = 16 * MIB
"""An allocation takes some 400 bytes, and a node of sixteen GPUs has 1,600 at most: what is larger is not ours, and to
read it would take as much memory as somebody likes."""


DAMAGED = f"{FILE_NAME}.damaged-"
DAMAGED_KEPT = 3
"""So many damaged files are kept, the newest: one that is damaged anew before each start would fill the disk."""


class Store:
    """``allocations.json`` in the state directory: ``{"version": 1, "allocations": [...]}``, each
    allocation in protobuf's JSON. It is written whole and atomically: a crash leaves the old one or the
    new one. Keys of an allocation that are not known are another version's, and still there when it is written anew."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self._content: Any = None
        """Of the file, where it is known to be on the disk."""
        self._unknown: dict[str, dict[str, Any]] = {}
        """By the allocation's id."""

    def load(self) -> list[Allocation] | None:
        """What was saved last; None where nothing ever was, or where it could not be used.

        A file that is damaged is set aside under a name of its own, beside the last ones that were, and an error is
        logged. Raises Unavailable where it cannot be read at all, or comes from a later version.
        """
        try:
            content = _content(read(self.path, BYTES_MAX))
            found = _allocations(content)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be read: {error.strerror or error}") from error
        except _LaterVersionError as error:
            raise Unavailable(
                f"{self.path} was written by a later edgeshare (version {error}, this one knows {VERSION}): "
                "run that one, or move the file away to begin without allocations"
            ) from error
        except ValueError as error:
            aside, removed = self._set_aside()
            logger.error(
                "%s is damaged (%s): it is now %s, and the manager begins without allocations; "
                "containers that have one keep their devices and run unshared until it is added again%s",
                self.path,
                error,
                aside,
                f"; removed, as the newest {DAMAGED_KEPT} are kept: {', '.join(removed)}" if removed else "",
            )
            return None
        self._content = content
        self._unknown = {allocation.id: unknown for allocation, unknown in found if unknown}
        return [allocation for allocation, _ in found]

    def save(self, allocations: Iterable[Allocation]) -> None:
        """Replaces what is saved; when it returns, it is on the disk. What is there already is not written: a manager
        serves what it has read from a disk that is full. Raises Unavailable where it cannot be written."""
        content = {
            "version": VERSION,
            "allocations": [
                MessageToDict(allocation, preserving_proto_field_name=True) | self._unknown.get(allocation.id, {})
                for allocation in allocations
            ],
        }
        if content == self._content:
            return
        try:
            fresh = write_json(self.path, content)
            self._content = None
            put(fresh, self.path)
        except OSError as error:
            raise Unavailable(f"{self.path} cannot be written: {error.strerror}") from error
        self._content = content

    def _set_aside(self) -> tuple[Path, list[str]]:
        """Where the file is now, and the names of those that went for it. Raises Unavailable where it cannot be."""
        suffixes = (path.name.removeprefix(DAMAGED) for path in self.path.parent.glob(f"{DAMAGED}*"))
        before = sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())
        aside = self.path.with_name(f"{DAMAGED}{before[-1] + 1 if before else 1}")
        try:
            self.path.rename(aside)
        except OSError as error:
            raise Unavailable(f"{self.path} is damaged, and cannot be set aside: {error.strerror}") from error
        removed = []
        for number in before[: 1 - DAMAGED_KEPT]:
            # What cannot be removed is in nobody's way, and is tried again the next time.
            with suppress(OSError):
                self.path.with_name(f"{DAMAGED}{number}").unlink()
                removed.append(f"{DAMAGED}{number}")
        return aside, removed


class _LaterVersionError(Exception):
    """The file has a version that was not known when this was written."""


def _content(text: bytes) -> Any:
    """What a text that ``save`` wrote says. Raises ValueError for whatever no version of it writes."""
    try:
        content: Any = json.loads(text)
        # Half of a surrogate pair, which json.loads lets through: protobuf has no error for a name with one.
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise _LaterVersionError(version)
    if version != VERSION or content.keys() != {"version", "allocations"}:
        raise ValueError(f"expected version {VERSION} and allocations, found {', '.join(map(str, content))}")
    return content


def _allocations(content: Any) -> list[tuple[Allocation, dict[str, Any]]]:
    """Each allocation, and what it has of keys that are not known. Raises ValueError as _content does."""
    entries = content["allocations"]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("allocations is no list of objects")
    try:
        return [
            (
                ParseDict(entry, Allocation(), ignore_unknown_fields=True),
                {key: value for key, value in entry.items() if key not in Allocation.DESCRIPTOR.fields_by_name},
            )
            for entry in entries
        ]
    except ParseError as error:
        raise ValueError(f"allocations: {error}") from error
