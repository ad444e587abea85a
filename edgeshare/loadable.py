"""Whether programs can load a library: where they cannot, the loader prints a line and runs them without it."""

import mmap
from pathlib import Path

from edgeshare.contract.errors import Unavailable


def check_loadable(library: Path) -> None:
    """Maps it as the loader does. Raises Unavailable where that is not allowed, as in a folder mounted noexec."""
    try:
        with library.open("rb") as file:
            mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
    except OSError as error:
        raise Unavailable(
            f"no program can load {library}: {error.strerror}: its folder is mounted noexec, or a security module "
            "forbids it: mount it without noexec, or choose another folder"
        ) from error
