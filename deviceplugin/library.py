"""The hook library as containers mount it: at a path with its content's hash, never changed once it lies
there.

An update puts another file beside it; containers keep the one that they were started with, and those that
start again get the one that their allocation names.
"""

import hashlib
import stat
from pathlib import Path

from deviceplugin.files import make_folder, write_file
from edgeshare.errors import Unavailable
from edgeshare.names import HOOK_LIBRARY

HASH_LENGTH = 32
"""Hexadecimal digits of SHA-256 that are kept: 128 bits, and paths that can still be read."""

EXECUTABLE = 0o555


class Library:
    """The hook libraries below ``folder``; ``source`` is the one that this version brings along."""

    def __init__(self, folder: Path, source: Path) -> None:
        self._folder = folder
        self._source = source
        self.hash = ""

    def install(self) -> None:
        """Puts this version's library in place; raises Unavailable where that cannot be done."""
        try:
            content = self._source.read_bytes()
        except OSError as error:
            raise Unavailable(
                f"the hook library cannot be read: {error}: install edgeshare with it, or run 'make build'"
            ) from error
        self.hash = hashlib.sha256(content).hexdigest()[:HASH_LENGTH]
        path = self.path(self.hash)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            make_folder(path.parent)
            _clear_folder(path)
            if not path.exists() or path.read_bytes() != content or not _is_readable(path):
                write_file(path, content, EXECUTABLE)
        except OSError as error:
            raise Unavailable(f"the hook library cannot be installed: {error}") from error

    def path(self, library_hash: str) -> Path:
        """Where the library of that hash lies on this node."""
        return self._folder / library_hash / HOOK_LIBRARY

    def check(self, library_hash: str) -> None:
        """Sees to it that a container can load the library of that hash; raises Unavailable where it cannot.

        A missing library would be mounted as an empty folder, and the container would run on unrestricted.
        """
        path = self.path(library_hash)
        if _is_readable(path):
            return
        if library_hash != self.hash:
            raise Unavailable(
                f"the hook library that this container was set up with is gone from {path}: make the pod anew"
            )
        self.install()


def _clear_folder(path: Path) -> None:
    # A container runtime makes a folder where a file that it has to mount is missing.
    if path.is_dir():
        path.rmdir()


def _is_readable(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and bool(status.st_mode & stat.S_IROTH)
