"""The cache folder: what is slow to make and depends on nothing but its version. And where what is thrown away lies."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
ROOMY_BYTES = 8 << 30
"""Of all shared memory, which by default is half of a machine's; a node and an image in the making take 2 GiB of it."""


def cache_dir() -> Path:
    """The folder, outside the tree: `$EDGESHARE_CACHE`, or `edgeshare` in the user's cache folder."""
    if named := os.environ.get("EDGESHARE_CACHE"):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeshare"


def scratch_dir() -> Path:
    """Where files lie that do not outlive a node, or the making of an image: in memory, where a machine has enough of
    it, else in the cache folder. On a disk that waits for each sync, and discards each block that is deleted, a node's
    images alone took 40 s to remove."""
    roomy = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).total >= ROOMY_BYTES
    return SHARED_MEMORY if roomy else cache_dir()


def make_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Return `target`, a file or a folder, which `make(path)` writes first where it is missing.

    It is written beside `target` and renamed, so that one that is there is always whole; a second maker
    waits for the first instead of doing the same work beside it.
    """
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
                made = Path(scratch) / target.name
                make(made)
                shutil.move(made, target)
    return target
