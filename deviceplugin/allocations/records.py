"""What each live allocation was made of, on disk: ``<folder>/<allocation>/record.json``, and beside it the
``ld.so.preload`` that its container mounts. The kubelet keeps its answer of Allocate over restarts and
reboots, so this is kept as long: also what another version wrote into a record, which that one may read again."""

import json
import logging
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from deviceplugin.files import RECORD_BYTES_MAX, clear_folder, make_folder, remove_unfinished, write_file
from deviceplugin.inject.response import preloaded_library
from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.bounded_file import read, says
from edgeshare.contract.errors import InvalidRequest, Unavailable

logger = logging.getLogger(__name__)

RECORD = "record.json"
PRELOAD = "ld.so.preload"

ALLOCATION: TypeAdapter[Allocation] = TypeAdapter(Allocation)


class Records:
    """The allocations below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def preload_file(self, allocation_id: str) -> Path:
        """The file that the allocation's container sees as its ``ld.so.preload``."""
        return self._folder / allocation_id / PRELOAD

    def write(self, allocation: Allocation, preload_text: str) -> None:
        """Keeps an allocation and sets its preload file; raises Unavailable where that cannot be done."""
        preload = self.preload_file(allocation.id)
        record = preload.parent / RECORD
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            make_folder(preload.parent)
            clear_folder(preload)
            # Only what differs: on the flash of a small machine a write that waits for the disk takes
            # milliseconds.
            kept = _with_unknown_keys(ALLOCATION.dump_python(allocation, mode="json"), _json_of(record))
            for path, content in ((preload, preload_text.encode()), (record, json.dumps(kept).encode())):
                if not _says(path, content):
                    write_file(path, content)
        except OSError as error:
            raise Unavailable(f"allocation {allocation.id} cannot be kept: {error}") from error

    def remove_unfinished(self) -> None:
        """Removes what a plugin that was killed was just writing. For a start: not while one writes."""
        for folder in self._folder.glob("*"):
            remove_unfinished(folder)

    def ids(self) -> set[str]:
        """Of which allocations there is anything, be it no record."""
        return {path.name for path in self._folder.glob("*")}

    def has(self, allocation_id: str) -> bool:
        """Whether there is a record of it, be it one that cannot be read."""
        return (self._folder / allocation_id / RECORD).exists()

    def library(self, allocation_id: str) -> str:
        """The hash of the library that this allocation's container preloads; empty where it preloads none, or it is not
        known."""
        try:
            return preloaded_library(read(self.preload_file(allocation_id), RECORD_BYTES_MAX).decode())
        except (OSError, ValueError):
            return ""

    def remove(self, allocation_id: str) -> None:
        """Forgets an allocation; one that is not there changes nothing."""
        shutil.rmtree(self._folder / allocation_id, ignore_errors=True)

    def read(self) -> Iterator[Allocation]:
        """Every allocation that was kept, oldest first. A key that is not known is passed over, another version's: its
        containers run on. One that cannot be read is left out, and said so."""
        for path in sorted(self._folder.glob(f"*/{RECORD}"), key=lambda path: path.lstat().st_mtime_ns):
            try:
                allocation = ALLOCATION.validate_json(read(path, RECORD_BYTES_MAX), strict=True, extra="ignore")
                if not by_device(allocation.unit_ids):
                    raise InvalidRequest("it has no units")
            except (OSError, ValueError, InvalidRequest) as error:
                first = " ".join(str(error).split())[:200]
                logger.warning("%s is left out, its container has to be made anew: %s", path, first)
                continue
            if allocation.id == path.parent.name:
                yield allocation
            else:
                logger.warning("%s is left out: it is of allocation %s", path, allocation.id)


def _json_of(record: Path) -> Any:
    try:
        return json.loads(read(record, RECORD_BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        # There is none yet, or it cannot be read, which was said at the start.
        return None


def _with_unknown_keys(known: dict[str, Any], before: Any) -> dict[str, Any]:
    """What is known now, and what else was there before, in the parts of it too."""
    if not isinstance(before, dict):
        return known
    unknown = {key: value for key, value in before.items() if key not in known}
    parts = {key: _with_unknown_keys(value, before.get(key)) for key, value in known.items() if isinstance(value, dict)}
    return {**known, **parts, **unknown}


def _says(path: Path, content: bytes) -> bool:
    # One that not everybody may read is silently not loaded.
    return says(path, content) and bool(path.stat().st_mode & stat.S_IROTH)
