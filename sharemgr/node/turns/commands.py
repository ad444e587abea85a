"""What an arbiter wants done to the gates of an allocation's clients."""

from dataclasses import dataclass

MAX_NUMBER = (1 << 30) - 1
"""The gate's word is 32 bits, two of which are flags (cuda_hook/wire.h); after this the numbers begin again at 1."""


class Numbers:
    """The numbers of one device's grants, which rise by one."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        """The next one."""
        self.last = self.last % MAX_NUMBER + 1
        return self.last


@dataclass(frozen=True, slots=True)
class Grant:
    """Open the gates of all clients of the allocation: launches pass from when the device is free. It may hold already:
    then one of them came in later."""

    allocation_id: str
    number: int
    contended: bool


@dataclass(frozen=True, slots=True)
class Contend:
    """The allocation goes on holding, but the contended bit of its grant changes."""

    allocation_id: str
    number: int
    contended: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """The allocation goes on holding, but the device falls free for it at another time than was said."""

    allocation_id: str
    number: int
    contended: bool


@dataclass(frozen=True, slots=True)
class Prolong:
    """The allocation goes on holding: its next slice has begun."""

    allocation_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Revoke:
    """Close the gates of all clients of the allocation."""

    allocation_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Check:
    """Look whether processes of the allocation's clients are stopped: its drain is late. Answered by `stopped`."""

    allocation_id: str


@dataclass(frozen=True, slots=True)
class Accuse:
    """Say that the pages of the allocation's clients told of other GPU time in the last second or longer than its
    driver did of their processes: it is charged for what it holds for a while."""

    allocation_id: str
    told_ns: int
    used_ns: int


Command = Grant | Contend | Begin | Prolong | Revoke | Check | Accuse
