"""What the ledger of an allocation keeps of each client, and what it answers."""

from dataclasses import dataclass, field

from edgeshare.contract.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a reservation."""

    granted: bool
    free_bytes: int
    """Under the cap, before this reservation."""
    unsure: bool = False
    """It is not granted, and would be if contexts took less than is set aside for them on a guess."""


@dataclass(frozen=True, slots=True)
class Info:
    """The memory of one device."""

    cap_bytes: int
    used_bytes: int
    """Held, dying and overhead, of all clients. What exists already and is declared, and overhead, can bring it over
    the cap."""

    @property
    def free_bytes(self) -> int:
        """What can still be reserved."""
        return max(0, self.cap_bytes - self.used_bytes)


@dataclass(slots=True)
class Entry:
    """What one client holds; lists have an element for each device."""

    held: list[int]
    overhead: list[int]
    contexts: list[int]
    dying: bool = False
    known: list[int] = field(default_factory=list)  # in use by its own account, when the last look at the driver began
    contexts_then: list[int] = field(default_factory=list)
    missed: set[int] = field(default_factory=set)  # devices where the last look did not find what contexts take
    guessed: dict[int, int] = field(default_factory=dict)  # by device: of the overhead, what is a guess

    def used_bytes(self, device: int) -> int:
        return self.held[device] + self.overhead[device]


def check_size(client_id: int, size_bytes: int) -> None:
    """Raises InvalidRequest for what is no size."""
    if size_bytes < 0:
        raise InvalidRequest(f"client {client_id} names {size_bytes} bytes: it must be 0 or more")
