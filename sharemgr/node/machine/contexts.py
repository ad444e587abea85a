"""What a bare CUDA context takes of a device, by the device's model and the driver's version: kept over restarts, so
that the first context after one counts as much as those before it."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from edgeshare.bounded_file import read
from edgeshare.contract.devices import Device
from edgeshare.contract.units import MIB
from sharemgr.node.machine.files import put, write_json

logger = logging.getLogger(__name__)

FILE_NAME = "contexts.json"
VERSION = 1

UNSEEN_BYTES = 600 * MIB
"""What is set aside for a context of a model that none was seen of. A bare context grows with the number of
multiprocessors: 107 MiB on an RTX 4060 Ti, 555 MiB on an RTX PRO 6000, the largest that was found
(github.com/ggml-org/llama.cpp/pull/23604), 256 MiB on an RTX 3090 (github.com/invoke-ai/InvokeAI/issues/9413)."""

FILE_BYTES_MAX = 1 << 16
KINDS_MAX = 64
"""Models and versions that are kept: those that came last."""
NAME_CHARACTERS_MAX = 128
CONTEXT_BYTES_MAX = 1 << 40
"""No context takes more: a file that says so is damaged."""


class Kind(NamedTuple):
    """What a context's size depends on."""

    model: str
    driver: str
    """The driver's version; empty where it says none."""


class ContextSizes:
    """By device id what a bare context takes, in bytes; devices of one kind have one figure. Runs in the event loop's
    thread, but for ``save``."""

    def __init__(self, path: Path | None = None, driver: str = "", unseen_bytes: int = 0) -> None:
        """``path`` is where they are kept (None: they are forgotten at the end), ``driver`` the version of the driver,
        ``unseen_bytes`` what is set aside for a context of a kind that none was seen of."""
        self.unseen_bytes = unseen_bytes
        self._path = path
        self._driver = driver
        self._kinds: dict[str, Kind] = {}
        self._bytes: dict[Kind, int] = _load(path) if path else {}
        self._saved = dict(self._bytes)
        self._failed = ""

    def take_in(self, device: Device) -> None:
        """Takes in of what model a device is."""
        self._kinds[device.id] = Kind(device.model[:NAME_CHARACTERS_MAX], self._driver[:NAME_CHARACTERS_MAX])

    def get(self, device_id: str, otherwise: int, /) -> int:
        """What a context takes of a device, where that is known."""
        return self._bytes.get(self._kinds[device_id], otherwise)

    def __setitem__(self, device_id: str, size_bytes: int) -> None:
        """A context takes so much of a device, as measured."""
        self._bytes[self._kinds[device_id]] = size_bytes

    def unsaved(self) -> dict[Kind, int] | None:
        """What is to be saved; None where all that is known is on the disk, or nothing is kept."""
        if self._path is None or self._bytes == self._saved:
            return None
        return dict(self._bytes)

    def save(self, known: Mapping[Kind, int]) -> None:
        """Writes what ``unsaved`` returned, atomically. Where that cannot be done it is said, once for each cause, and
        tried again when a figure changes. Waits for the disk."""
        assert self._path is not None
        self._saved = dict(known)
        newest = list(known.items())[-KINDS_MAX:]
        rows = [{"model": kind.model, "driver": kind.driver, "bytes": size_bytes} for kind, size_bytes in newest]
        try:
            put(write_json(self._path, {"version": VERSION, "contexts": rows}), self._path)
        except OSError as error:
            said = f"{self._path} cannot be written: {error.strerror or error}"
            if said != self._failed:
                logger.warning("%s; what is not there counts after a restart as a new model's context", said)
            self._failed = said


def _load(path: Path) -> dict[Kind, int]:
    """What was kept; nothing where there is no file, or one that ``save`` did not write, which is said."""
    try:
        return dict(_rows(json.loads(read(path, FILE_BYTES_MAX))))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        logger.warning(
            "%s cannot be used (%s): contexts count as those of new models until they are measured, then it is "
            "written anew",
            path,
            error,
        )
        return {}


def _rows(content: Any) -> Iterator[tuple[Kind, int]]:
    """Raises ValueError for whatever ``save`` does not write."""
    if not isinstance(content, dict) or content.get("version") != VERSION or type(content["version"]) is not int:
        raise ValueError(f"it is no object of version {VERSION}")
    rows = content.get("contexts")
    if not isinstance(rows, list) or len(rows) > KINDS_MAX:
        raise ValueError(f"contexts is no list of at most {KINDS_MAX}")
    for row in rows:
        if not isinstance(row, dict) or row.keys() != {"model", "driver", "bytes"}:
            raise ValueError("a context has other keys than model, driver and bytes")
        names = row["model"], row["driver"]
        if not all(isinstance(name, str) and len(name) <= NAME_CHARACTERS_MAX for name in names):
            raise ValueError(f"a model or driver is no text of at most {NAME_CHARACTERS_MAX} characters")
        if type(row["bytes"]) is not int or not 0 < row["bytes"] <= CONTEXT_BYTES_MAX:
            raise ValueError(f"bytes is no number from 1 to {CONTEXT_BYTES_MAX}")
        yield Kind(*names), row["bytes"]
