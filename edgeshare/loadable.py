"""Whether programs can load a library: where they cannot, the loader prints a line and runs them without it."""

import errno
import mmap
import os
from pathlib import Path

from edgeshare.contract.errors import Unavailable


def map_to_run(library: Path) -> mmap.mmap:
    """Maps it as the loader does. As long as that is kept nobody can take a lease of the file that would let whoever
    opens it wait (fcntl(2), F_SETLEASE). Raises Unavailable where it cannot be mapped, as in a folder mounted
    noexec."""
    try:
        descriptor = os.open(library, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        finally:
            os.close(descriptor)
    except OSError as error:
        why = (
            "its folder is mounted noexec, or a security module forbids it: mount it without noexec, or choose another "
            "folder"
        )
        if error.errno == errno.EWOULDBLOCK:
            why = "a process has a lease of it, which ends within /proc/sys/fs/lease-break-time: try again then"
        raise Unavailable(f"no program can load {library}: {error.strerror}: {why}") from error
