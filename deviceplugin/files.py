"""Small files that others read while we write them: whole or as they were, also after a power cut."""

import logging
import os
import tempfile
from pathlib import Path

logger = logging.getLogger(__name__)

READABLE = 0o644
SEARCHABLE = 0o755

RECORD_BYTES_MAX = 1 << 20
"""Of a record of ours; the units of eight whole GPUs, 800 names, take a twentieth of it."""

RANDOM_LENGTH = 8
"""Characters that mkstemp adds to a name."""


def write_file(path: Path, content: bytes, mode: int = READABLE) -> None:
    """Puts a file in place by rename, whatever is there now; who has the old one mapped or mounted keeps it. Raises
    OSError, which names the path."""
    try:
        _put(path, content, mode)
    except OSError as error:
        # The name of the file that takes its place is another each time, and would be a new reason for whoever says it.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _put(path: Path, content: bytes, mode: int) -> None:
    descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Removes what ``write_file`` left beside files of this name, a pattern, when it was killed. Not for a folder into
    which somebody is writing."""
    for path in folder.glob(f".{name}.{'?' * RANDOM_LENGTH}"):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            # It is in nobody's way; the next start tries again.
            logger.warning("an unfinished file stays: %s", error)


def make_folder(path: Path, mode: int = SEARCHABLE) -> None:
    """Makes a folder of this mode, whatever the umask says; one that is there keeps its own."""
    try:
        path.mkdir()
    except FileExistsError:
        return
    path.chmod(mode)


def clear_folder(path: Path) -> None:
    """Makes room for a file that containers have mounted: a container runtime makes a folder where that is missing.
    Raises OSError where something is in the folder."""
    if path.is_dir():
        path.rmdir()
