"""Reads the files in which a kernel describes a machine, below any root. Whatever lies there: what is read is
bounded, and what is no text is refused with its path."""

import errno
import os
import stat
from collections.abc import Callable
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TypeVar

from edgeshare.contract.errors import Unavailable

Found = TypeVar("Found")

PCI_DEVICES = "/sys/bus/pci/devices"
DEVICETREE = "/sys/firmware/devicetree/base"

FILE_BYTES_MAX = 64 * 1024
"""A sysfs attribute is a page at most; /proc/meminfo some 2 KiB."""

NAMES_MAX = 4096
"""Entries of a folder, or matches of a pattern: more is no machine."""

GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EAGAIN)
"""What the kernel says of a path that is not there, that goes with its device while it is read, or that has no value
while the device sleeps (temperatures of a Jetson)."""


class Tree:
    """A machine's ``/sys``, ``/proc`` and ``/dev`` below a root. Paths are given, and answered, as the machine itself
    has them: absolute, without the root."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def exists(self, path: str) -> bool:
        try:
            return self._at(path).exists()
        except OSError:
            # Where we may not look there is nothing that we could hand out.
            return False

    def read(self, path: str) -> bytes | None:
        """A file's content; None where there is none. Raises Unavailable where it cannot be read, or is too large."""
        try:
            content = self._content(path)
        except OSError as error:
            if error.errno in GONE:
                return None
            raise Unavailable(f"{path} cannot be read: {error.strerror}; look at its permissions") from error
        if len(content) > FILE_BYTES_MAX:
            raise Unavailable(f"{path} is larger than {FILE_BYTES_MAX} bytes: no kernel writes that there")
        return content

    def strings(self, path: str) -> tuple[str, ...]:
        """A devicetree property of several strings; empty where there is none. Raises Unavailable."""
        content = self.read(path) or b""
        return tuple(_text(part, path) for part in content.split(b"\0") if part.strip())

    def line(self, path: str) -> str | None:
        """A file of one line, without what ends it; None where there is no file. Raises Unavailable."""
        content = self.read(path)
        return None if content is None else _text(content, path)

    def number(self, path: str) -> int | None:
        """A file that holds a whole number; None where there is no file. Raises Unavailable."""
        text = self.line(path)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError as error:
            raise Unavailable(f"{path} says {shown(text)}, not a number") from error

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted; nothing where there is none. Raises Unavailable."""
        return self._listed(path, lambda entry: True)

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, and not a link to one, which might lead out of the root. Raises Unavailable."""
        try:
            return stat.S_ISDIR(os.lstat(self._at(path)).st_mode)
        except OSError as error:
            if error.errno in GONE:
                return False
            raise Unavailable(f"{path} cannot be looked at: {error.strerror}; look at its permissions") from error

    def folders(self, path: str) -> list[str]:
        """The folders in a folder, sorted, links left out; none where there is no such folder. Raises Unavailable."""
        return self._listed(path, lambda entry: entry.is_dir(follow_symlinks=False))

    def matches(self, pattern: str) -> list[str]:
        """The paths that a pattern fits (``*``, ``?``, ``[…]``), sorted. Raises Unavailable."""
        # Unlike Path.glob it passes over a folder that goes with its device meanwhile.
        found = islice(iglob(pattern.lstrip("/"), root_dir=self._root), NAMES_MAX + 1)  # noqa: PTH207
        return sorted(f"/{path}" for path in _few(list(found), pattern))

    def target(self, path: str) -> str | None:
        """The last name of what a link leads to; None where there is no such path."""
        return self._at(path).resolve().name if self.exists(path) else None

    def _listed(self, path: str, wanted: Callable[[os.DirEntry[str]], bool]) -> list[str]:
        try:
            with os.scandir(self._at(path)) as entries:
                found = [entry.name for entry in islice(filter(wanted, entries), NAMES_MAX + 1)]
        except OSError as error:
            if error.errno in GONE:
                return []
            raise Unavailable(f"{path} cannot be listed: {error.strerror}; look at its permissions") from error
        return sorted(_few(found, path))

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _content(self, path: str) -> bytes:
        # A pipe put in its place must not hold us up.
        descriptor = os.open(self._at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unavailable(f"{path} is not a plain file: look at what lies there")
            parts, size = [], 0
            while size <= FILE_BYTES_MAX and (part := os.read(descriptor, FILE_BYTES_MAX + 1)):
                parts.append(part)
                size += len(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)


def shown(text: str) -> str:
    """Somebody else's text, fit for a message."""
    return ascii(text if len(text) <= 60 else f"{text[:57]}...")


def _text(content: bytes, path: str) -> str:
    try:
        text = content.rstrip(b"\0\n ").decode()
    except UnicodeDecodeError as error:
        raise Unavailable(f"{path} holds no text: {shown(content[:60].decode('latin-1'))}") from error
    if not text.isprintable():
        raise Unavailable(f"{path} holds no plain line of text: {shown(text)}")
    return text


def _few(found: list[Found], where: str) -> list[Found]:
    if len(found) > NAMES_MAX:
        raise Unavailable(f"{where} has more than {NAMES_MAX} entries: no machine has so many devices")
    return found
