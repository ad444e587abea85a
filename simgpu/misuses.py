"""What a machine's driver has noted of calls that a real one need not survive."""

import os
from pathlib import Path

MADE = "simgpu.made"
"""The audit event (``sys.addaudithook``) of a machine that was made; its argument is the directory."""


class Misuses:
    """A machine's, read as they come, also after its files are gone. Raises OSError where there is no machine."""

    def __init__(self, directory: Path) -> None:
        path = directory / "misuses"
        # Where none was noted so far: the driver would make it, and who reads it then may be too late.
        self._file = path.open("a+")
        self._file.seek(0)
        self._begun = ""  # of a line that is being written
        if path.stat().st_uid == os.getuid():
            path.chmod(0o666)
        self.directory = directory

    def new(self) -> list[str]:
        """Those since the last call, oldest first: the function of the driver, or the part of it that several have in
        common, and what it was given or lacked, as in "cuEventQuery: destroyed event"."""
        whole, _, self._begun = (self._begun + self._file.read()).rpartition("\n")
        return whole.splitlines()

    @property
    def over(self) -> bool:
        """The machine's files are gone."""
        return not (self.directory / "misuses").exists()

    def close(self) -> None:
        """Lets go of it."""
        self._file.close()
