"""The pages of siblings that this process has open, of all that it has: other tests' threads open and close, too."""

from contextlib import suppress
from pathlib import Path


def open_siblings() -> set[str]:
    """Their descriptors."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if "edgeshare-siblings" in str(link.readlink()):
                found.add(str(link))
    return found


def mapped_siblings() -> set[str]:
    """Where they are mapped."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[0] for line in lines if "edgeshare-siblings" in line}
