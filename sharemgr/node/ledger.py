"""The memory of one allocation: what its clients hold of each of its devices, and whether more fits under the cap.

A client reserves, asks the driver, and commits what it got or cancels; what it frees it says afterwards. So the sum is
never less than what is really in use, and a refusal is exact. A client that is gone leaves what it had as *dying* until
the driver has freed it too. What the driver takes by itself (contexts, code) is *overhead*: it is measured from time to
time, leaves less for what comes, and takes nothing away from what is there.
"""

from dataclasses import dataclass, field

from edgeshare.errors import InvalidRequest

MAX_RESERVATIONS = 1024
"""Open reservations of one client: each is a thread of it that is inside the driver."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a reservation."""

    granted: bool
    free_bytes: int
    """Under the cap, before this reservation."""


@dataclass(frozen=True, slots=True)
class Info:
    """The memory of one device."""

    cap_bytes: int
    used_bytes: int
    """Committed, reserved, dying and overhead, of all clients. Overhead can bring it over the cap."""

    @property
    def free_bytes(self) -> int:
        """What can still be reserved."""
        return max(0, self.cap_bytes - self.used_bytes)


@dataclass(slots=True)
class _Entry:
    """What one client holds; lists have an element for each device."""

    committed: list[int]
    reserved: list[int]
    overhead: list[int]
    reservations: dict[int, tuple[int, int]] = field(default_factory=dict)  # number: (device, bytes)
    dying: bool = False

    def used_bytes(self, device: int) -> int:
        return self.committed[device] + self.reserved[device] + self.overhead[device]


class Ledger:
    """The ledger of one allocation. Devices are indices within it. What a client says that cannot be (a number that is
    not open, more freed than it had) raises InvalidRequest and changes nothing."""

    def __init__(self, cap_bytes: int, devices: int = 1) -> None:
        """`cap_bytes` is of each device."""
        self._cap_bytes = cap_bytes
        self._used = [0] * devices
        self._entries: dict[int, _Entry] = {}

    def join(self, client_id: int) -> None:
        """A client came: also one that never reserves is measured, for what the driver takes for its context."""
        self._entry(client_id)

    def reserve(self, client_id: int, number: int, device: int, size_bytes: int) -> Verdict:
        """May a client take this much? If granted, the reservation stays open under its number until it is committed or
        cancelled."""
        self._check_device(client_id, device)
        entry = self._entry(client_id)
        free_bytes = max(0, self._cap_bytes - self._used[device])
        if number in entry.reservations:
            raise InvalidRequest(
                f"client {client_id} reserves memory under number {number}, which is open: "
                "it must take another until it commits or cancels that"
            )
        if len(entry.reservations) >= MAX_RESERVATIONS:
            raise InvalidRequest(
                f"client {client_id} has {MAX_RESERVATIONS} reservations of memory open, the most there may be: "
                "it must commit or cancel them"
            )
        if size_bytes < 0 or size_bytes > free_bytes:
            return Verdict(False, free_bytes)
        entry.reservations[number] = (device, size_bytes)
        entry.reserved[device] += size_bytes
        self._used[device] += size_bytes
        return Verdict(True, free_bytes)

    def commit(self, client_id: int, number: int, size_bytes: int) -> None:
        """The driver gave this much, which may be more or less than was reserved."""
        if size_bytes < 0:
            raise InvalidRequest(f"client {client_id} commits {size_bytes} bytes: it must be 0 or more")
        device = self._close(client_id, number)
        self._entries[client_id].committed[device] += size_bytes
        self._used[device] += size_bytes

    def cancel(self, client_id: int, number: int) -> None:
        """The driver refused."""
        self._close(client_id, number)

    def freed(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client gave this much back to the driver."""
        self._check_device(client_id, device)
        entry = self._entry(client_id)
        if not 0 <= size_bytes <= entry.committed[device]:
            raise InvalidRequest(
                f"client {client_id} frees {size_bytes} bytes of device {device}, of which it has "
                f"{entry.committed[device]}: it must free what it committed"
            )
        entry.committed[device] -= size_bytes
        self._used[device] -= size_bytes

    def reconcile(self, client_id: int, device: int, driver_bytes: int) -> None:
        """Takes in what the driver says a client's process uses of a device: what it holds above what was committed is
        overhead. A reservation that is open may be in the driver's figure already, and counts once."""
        self._check_device(client_id, device)
        entry = self._entries.get(client_id)
        if entry is None or entry.dying:
            return
        known_bytes = entry.committed[device] + entry.reserved[device]
        overhead_bytes = max(0, driver_bytes - known_bytes)
        self._used[device] += overhead_bytes - entry.overhead[device]
        entry.overhead[device] = overhead_bytes

    def client_gone(self, client_id: int) -> None:
        """A client's process is gone: what it had is dying. What it had reserved may have been given to it."""
        entry = self._entries.get(client_id)
        if entry is None:
            return
        if any(entry.used_bytes(device) for device in range(len(self._used))):
            entry.dying = True
        else:
            del self._entries[client_id]

    def driver_freed(self, client_id: int) -> None:
        """The driver no longer lists a dying client's process."""
        entry = self._entries.get(client_id)
        if entry is None or not entry.dying:
            return
        for device in range(len(self._used)):
            self._used[device] -= entry.used_bytes(device)
        del self._entries[client_id]

    def info(self, device: int) -> Info:
        """Cap and use of one device. Raises InvalidRequest where the allocation has no such device."""
        self._check_device(None, device)
        return Info(self._cap_bytes, self._used[device])

    def overhead_bytes(self, device: int) -> int:
        """What the driver took of one device by itself, for all clients together."""
        return sum(entry.overhead[device] for entry in self._entries.values())

    def client_bytes(self, client_id: int) -> int:
        """What one client uses of all devices."""
        entry = self._entries.get(client_id)
        return sum(entry.used_bytes(device) for device in range(len(self._used))) if entry is not None else 0

    def dying(self) -> dict[int, int]:
        """The clients that are gone and whose memory the driver has not freed yet, and how many bytes each had."""
        return {client_id: self.client_bytes(client_id) for client_id, entry in self._entries.items() if entry.dying}

    def _entry(self, client_id: int) -> _Entry:
        entry = self._entries.get(client_id)
        if entry is None:
            devices = len(self._used)
            entry = self._entries[client_id] = _Entry([0] * devices, [0] * devices, [0] * devices)
        return entry

    def _close(self, client_id: int, number: int) -> int:
        entry = self._entries.get(client_id)
        if entry is None or number not in entry.reservations:
            raise InvalidRequest(
                f"client {client_id} commits or cancels reservation {number}, which is not open: "
                "it must reserve memory first"
            )
        device, size_bytes = entry.reservations.pop(number)
        entry.reserved[device] -= size_bytes
        self._used[device] -= size_bytes
        return device

    def _check_device(self, client_id: int | None, device: int) -> None:
        if not 0 <= device < len(self._used):
            who = "somebody" if client_id is None else f"client {client_id}"
            raise InvalidRequest(
                f"{who} names device {device} of an allocation that has {len(self._used)}: name one from 0"
            )
