"""Small files that somebody may have damaged, or put something else in the place of."""

import os
import stat
from pathlib import Path


def read(path: Path, bytes_max: int) -> bytes:
    """A file's bytes. Raises ValueError where there are more than ``bytes_max``, and OSError, for what is no file, too:
    who opens a pipe waits for somebody at its other end. And for one of which a process has a lease (F_SETLEASE, which
    its owner can take of a file that is mounted read only, too): who opens that waits for up to 45 s."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no regular file")
        text = file.read(bytes_max + 1)
    if len(text) > bytes_max:
        raise ValueError(f"it is larger than {bytes_max >> 10} KiB")
    return text


def says(path: Path, content: bytes) -> bool:
    """Whether that is what the file says, as far as it can be read now."""
    try:
        return read(path, len(content)) == content
    except (OSError, ValueError):
        return False
