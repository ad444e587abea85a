"""The folder of a release: all of it, or nothing."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUMS = "SHA256SUMS"


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A folder to fill, which stands at `target`, in place of one that was there before, once the block has ended well.
    Else nothing of it is left, nor the folder that it was to be in, where that holds nothing else."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".release-") as scratch:
            # Of the usual mode, which that of a temporary folder is not.
            fresh = Path(scratch) / "fresh"
            fresh.mkdir()
            yield fresh
            if target.exists():
                target.rename(Path(scratch) / "before")
            fresh.rename(target)
    finally:
        if not any(target.parent.iterdir()):
            target.parent.rmdir()


def write_sums(folder: Path) -> None:
    """Write what `sha256sum --check` reads, in the folder, of all files below it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{sha256(path)}  {path.relative_to(folder)}\n" for path in paths]
    (folder / SUMS).write_text("".join(lines))


def sha256(path: Path) -> str:
    """Of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
