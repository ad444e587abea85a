"""The hook library as containers mount it: at a path with its content's hash, never changed once it lies
there.

An update puts another file beside it; containers keep the one that they were started with, and those that
start again get the one that their allocation names. One that no allocation names any more is removed, once it is known
which there are.
"""

import hashlib
import logging
import mmap
import re
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from deviceplugin.files import clear_folder, make_folder, remove_unfinished, write_file
from edgeshare.bounded_file import read
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import HOOK_LIBRARY
from edgeshare.contract.units import MIB
from edgeshare.loadable import map_to_run

logger = logging.getLogger(__name__)

HASH_LENGTH = 32
"""Hexadecimal digits of SHA-256 that are kept: 128 bits, and paths that can still be read."""

OUR_FOLDER = re.compile(rf"[0-9a-f]{{{HASH_LENGTH}}}")

EXECUTABLE = 0o555

BYTES_MAX = 64 * MIB
"""The library has less than one."""


class Library:
    """The hook libraries below ``folder``; ``source`` is the one that this version brings along."""

    def __init__(self, folder: Path, source: Path) -> None:
        self._folder = folder
        self._source = source
        self.hash = ""
        self.all_known = False
        """Whether all allocations are known of this node, as after a comparison; until then none is removed."""
        self._kept: set[str] = set()
        self._mapped: dict[str, mmap.mmap] = {}
        """By hash, those that containers start with. While one is mapped here none of them can take a lease of it, and
        have every program of every container that starts wait."""

    def install(self) -> None:
        """Puts this version's library in place; raises Unavailable where that cannot be done, or no program could load
        it from there."""
        try:
            content = self._source.read_bytes()
        except OSError as error:
            raise Unavailable(
                f"the hook library cannot be read: {error}: install edgeshare with it, or run 'make build'"
            ) from error
        self.hash = _hash(content)
        path = self.path(self.hash)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            make_folder(path.parent)
            remove_unfinished(path.parent)
            clear_folder(path)
            if not _is_intact(path, self.hash):
                write_file(path, content, EXECUTABLE)
        except OSError as error:
            raise Unavailable(f"the hook library cannot be installed: {error}") from error
        self._mapped[self.hash] = map_to_run(path)

    def path(self, library_hash: str) -> Path:
        """Where the library of that hash lies on this node."""
        return self._folder / library_hash / HOOK_LIBRARY

    def check(self, library_hash: str) -> None:
        """Sees to it that a container can load the library of that hash; raises Unavailable where it cannot.

        A missing library would be mounted as an empty folder, and the container would run on unrestricted.
        """
        if not library_hash:
            raise Unavailable(
                "which hook library this container was set up with is not known any more: make the pod anew"
            )
        path = self.path(library_hash)
        if _is_intact(path, library_hash):
            self._mapped[library_hash] = map_to_run(path)
            return
        if library_hash != self.hash:
            if path.is_file() and path.stat().st_size:
                # Says so where a process has a lease of it, and that it is to be tried again.
                map_to_run(path).close()
            raise Unavailable(
                f"the hook library that this container was set up with is gone from {path}, or damaged: "
                "make the pod anew"
            )
        self.install()

    def keep(self, library_hash: str) -> None:
        """Never removes this one: a container may have it mounted of which nothing else is known."""
        self._kept.add(library_hash)

    def remove_all_but(self, wanted: Collection[str]) -> None:
        """Removes the libraries of other versions whose hash is not wanted. Who has one mounted keeps it."""
        if not self.all_known or not self._folder.is_dir():
            return
        for folder in self._folder.iterdir():
            if OUR_FOLDER.fullmatch(folder.name) and folder.name not in {self.hash, *self._kept, *wanted}:
                self._mapped.pop(folder.name, None)
                try:
                    shutil.rmtree(folder)
                except OSError as error:
                    # It is in nobody's way; the next removal tries again.
                    logger.warning("an old hook library stays: %s", error)
                else:
                    logger.info("removed the hook library %s: no allocation has it any more", folder.name)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:HASH_LENGTH]


def _is_intact(path: Path, library_hash: str) -> bool:
    """Whether everybody can read the library there, and it is the one of that hash; not of which a process has a lease:
    another file in its place has none."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH) and _hash(read(path, BYTES_MAX)) == library_hash
    except (OSError, ValueError):
        return False
