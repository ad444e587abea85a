"""What a simulated machine tells who looks at it: processes, GPUs, what these ran, and what its driver has noted."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

KINDS = {1: "kernel", 2: "copy", 3: "set", 4: "host"}
MADE = "simgpu.made"
"""The audit event (``sys.addaudithook``) of a machine that was made; its argument is the directory."""


@dataclass(frozen=True)
class Process:
    """A process that initialised the driver, dead ones included until their slot is used again."""

    id: int
    """Never the same again on this machine."""
    slot: int
    pid: int
    """As the observer sees it; as the process saw itself once it is dead or out of sight."""
    tag: str
    """``SIMGPU_TAG`` of its environment."""
    name: str
    alive: bool
    start_ns: int
    end_ns: int
    executed_ns: tuple[int, ...]
    """GPU time that it has used, for each GPU."""
    entries: tuple[int, ...]
    """Kernels, copies and sets that it has finished, for each GPU."""
    events: tuple[int, ...]
    """Events that it has recorded, for each GPU."""
    memory_bytes: tuple[int, ...]
    """Memory that it holds, contexts included, for each GPU."""


@dataclass(frozen=True)
class Interval:
    """A stretch of time in which a GPU ran one entry of a queue."""

    begin_ns: int
    end_ns: int
    process: int
    """Process.id"""
    slot: int
    context: int
    stream: int
    entry: int
    """Number within its context."""
    kind: str
    last: bool
    """The entry ended with this interval."""

    @classmethod
    def of(cls, entry: Any) -> Self:
        """From an entry of the machine's log, as C has it."""
        return cls(
            begin_ns=entry.begin_ns,
            end_ns=entry.end_ns,
            process=entry.process,
            slot=entry.slot,
            context=entry.context,
            stream=entry.stream,
            entry=entry.entry,
            kind=KINDS[entry.kind],
            last=bool(entry.last),
        )


@dataclass(frozen=True)
class Gpu:
    """One GPU as it is now."""

    index: int
    uuid: str
    name: str
    memory_bytes: int
    used_bytes: int
    busy_ns: int
    """GPU time ever used."""
    queued: int
    """Entries waiting or running."""
    lost: bool
    xids: tuple[int, ...]
    """The last ones, oldest first."""
    ecc_single: int
    ecc_double: int
    remap_pending: bool
    """A row of its memory waits for a reset."""
    remap_failed: bool
    temperature_c: int
    """As a fault has set it; 0: as its load makes it."""


class Misuses:
    """What a machine's driver has noted of calls that a real one need not survive, read as it comes, also after the
    machine's files are gone. Raises OSError where there is no machine."""

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
        """The misuses since the last call, oldest first: the function of the driver, or the part of it that several
        have in common, and what it was given or lacked, as in "cuEventQuery: destroyed event"."""
        whole, _, self._begun = (self._begun + self._file.read()).rpartition("\n")
        return whole.splitlines()

    @property
    def over(self) -> bool:
        """The machine's files are gone."""
        return not (self.directory / "misuses").exists()

    def close(self) -> None:
        """Lets go of it."""
        self._file.close()
