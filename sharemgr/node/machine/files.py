"""Small files of the manager's state: written whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, content: Any) -> Path:
    """Writes beside a file what is to be in its place; when it returns, that is on the disk. Returns where. Raises
    OSError; what was written by then is gone: most often the disk is full."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    # Whatever stands there meanwhile, be it a link to something else, is not written to.
    with fresh.open("x", encoding="utf-8") as file:
        try:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
    return fresh


def put(fresh: Path, path: Path) -> None:
    """Puts what was written in its place, at once and for good. Raises OSError."""
    fresh.replace(path)
    # The rename itself is on the disk only after this.
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
