"""The memory of one allocation: what its clients hold of each of its devices, and whether more fits under the cap.

A client asks before it asks the driver, and what it is granted it holds from then on, until it says that it holds it no
more. So the sum is never less than what is really in use, and a refusal is exact. Besides what it asked for a client
gets an *allowance*: bytes that it holds before it needs them, so that it need not ask each time; how much of what it
holds it does not use, its allowance word says, and the shell takes that back before anything is refused. A client that
is gone leaves what it had as *dying* until the driver has freed it too. What the driver takes by itself (contexts,
code) is *overhead*: it is measured from time to time, leaves less for what comes, and takes nothing away from what is
there.
"""

from collections.abc import Sequence

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import MIB
from sharemgr.node.memory.entry import Entry, Info, Verdict, check_size

ALLOWANCE_BYTES_MAX = 64 * MIB
ALLOWANCE_PERCENT_OF_CAP = 2
"""The most that a client is allowed at a time. Larger ones save nothing: what is freed stays allowed anyway."""

ALLOWANCE_PART_OF_FREE = 4
"""An allowance is at most this part of what is free, so that near the cap clients do not take turns at taking the last
bytes away from each other."""

HELD_BYTES_MAX = 1 << 56
"""No client holds more than this, whatever it declares."""


class Ledger:
    """The ledger of one allocation. Devices are indices within it. What a client says that cannot be (more freed than
    it had) raises InvalidRequest and changes nothing."""

    def __init__(self, cap_bytes: int, devices: int = 1) -> None:
        """`cap_bytes` is of each device."""
        self._cap_bytes = cap_bytes
        self._used = [0] * devices
        self._entries: dict[int, Entry] = {}
        # Of each device by client: what was set aside on a guess, until two looks have found the same.
        self._unsure: list[dict[int, int]] = [{} for _ in range(devices)]

    def join(self, client_id: int) -> None:
        """A client came: also one that never reserves is measured, for what the driver takes for its context."""
        self._entry(client_id)

    def reserve(self, client_id: int, device: int, size_bytes: int) -> Verdict:
        """May a client take this much? If so it holds it from now on. What was set aside for contexts on a guess
        counts until two looks have found the same, also where the first has found less."""
        self._check_device(client_id, device)
        check_size(client_id, size_bytes)
        free_bytes = max(0, self._cap_bytes - self._used[device])
        if size_bytes > free_bytes - self._more_bytes(device):
            fits_bytes = self._cap_bytes - self._used[device] + self._guessed_bytes(device)
            unsure = bool(self._unsure[device]) and size_bytes <= fits_bytes
            if unsure or size_bytes > free_bytes:
                return Verdict(False, free_bytes, unsure)
        self._hold(client_id, device, size_bytes)
        return Verdict(True, free_bytes)

    def reserve_context(self, client_id: int, device: int, size_bytes: int, guess: bool = False) -> Verdict:
        """May a client make a context, which will take about so much? It counts as overhead, which is then measured."""
        self._check_device(client_id, device)
        free_bytes = max(0, self._cap_bytes - self._used[device])
        if size_bytes > free_bytes:
            return Verdict(False, free_bytes)
        self.declare_context(client_id, device, size_bytes, guess)
        return Verdict(True, free_bytes)

    def declare_context(self, client_id: int, device: int, size_bytes: int, guess: bool = False) -> None:
        """A client has a context already, which takes about so much. It counts as overhead, which is then measured."""
        self._check_device(client_id, device)
        entry = self._entry(client_id)
        entry.contexts[device] += 1
        entry.missed.discard(device)
        entry.overhead[device] += size_bytes
        if guess:
            self._guess(client_id, device, size_bytes)
        self._used[device] += size_bytes

    def forget_guesses(self, device: int, context_bytes: int = 0) -> None:
        """What was set aside on a guess, and has not been measured, is not any more, but for ``context_bytes`` of each
        context."""
        for client_id in self._entries:
            self.forget_guess(client_id, device, context_bytes)

    def forget_guess(self, client_id: int, device: int, context_bytes: int = 0) -> None:
        """What was set aside for one client on a guess, and has not been measured, is not any more, but for
        ``context_bytes`` of each context."""
        entry = self._entries.get(client_id)
        self._unsure[device].pop(client_id, None)
        if entry is not None:
            size_bytes = min(entry.guessed.pop(device, 0), entry.overhead[device])
            size_bytes = max(0, size_bytes - context_bytes * entry.contexts[device])
            entry.overhead[device] -= size_bytes
            self._used[device] -= size_bytes

    def context_ended(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client made a context less; it takes about so much with it."""
        self._check_device(client_id, device)
        entry = self._entry(client_id)
        if not entry.contexts[device]:
            raise InvalidRequest(f"client {client_id} ends a context of device {device}, where it made none")
        size_bytes = min(size_bytes, entry.overhead[device])
        entry.contexts[device] -= 1
        entry.overhead[device] -= size_bytes
        self._used[device] -= size_bytes
        if not entry.contexts[device]:
            self._unsure[device].pop(client_id, None)

    def allow(self, client_id: int, device: int, standing_bytes: int) -> int:
        """How much more a client gets to hold before it needs it, `standing_bytes` of which it has."""
        self._check_device(client_id, device)
        free_bytes = max(0, self._cap_bytes - self._used[device] - self._more_bytes(device))
        most_bytes = min(ALLOWANCE_BYTES_MAX, self._cap_bytes * ALLOWANCE_PERCENT_OF_CAP // 100)
        size_bytes = max(0, min(most_bytes, free_bytes // ALLOWANCE_PART_OF_FREE) - standing_bytes)
        self._hold(client_id, device, size_bytes)
        return size_bytes

    def declare(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client has this much already, which nobody here granted: it fits or it does not, it is there."""
        self._check_device(client_id, device)
        check_size(client_id, size_bytes)
        if self._entry(client_id).held[device] + size_bytes > HELD_BYTES_MAX:
            raise InvalidRequest(
                f"client {client_id} declares {size_bytes} bytes of device {device}: no device has that"
            )
        self._hold(client_id, device, size_bytes)

    def inherit(self, heir_id: int, dying_id: int, device: int, size_bytes: int) -> int:
        """A process is back as another client and says that it has this much: what it had as the dying one goes over to
        it. Returns for how much that stands, which is not to be declared."""
        self._check_device(heir_id, device)
        dying = self._entries.get(dying_id)
        if dying is None or not dying.dying:
            return 0
        size_bytes = min(size_bytes, dying.held[device])
        dying.held[device] -= size_bytes
        self._entry(heir_id).held[device] += size_bytes
        return size_bytes

    def inherit_context(self, heir_id: int, dying_id: int, device: int) -> bool:
        """Gives the heir a context of the dying client, with its part of what the driver took; whether there was
        one."""
        self._check_device(heir_id, device)
        dying, heir = self._entries.get(dying_id), self._entry(heir_id)
        if dying is None or not dying.dying or not dying.contexts[device]:
            return False
        part_bytes = dying.overhead[device] // dying.contexts[device]
        dying.overhead[device] -= part_bytes
        dying.contexts[device] -= 1
        heir.overhead[device] += part_bytes
        heir.contexts[device] += 1
        guess_bytes = min(part_bytes, dying.guessed.get(device, 0))
        if guess_bytes:
            dying.guessed[device] -= guess_bytes
            self._guess(heir_id, device, guess_bytes)
        return True

    def freed(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client holds this much no more."""
        self._check_device(client_id, device)
        entry = self._entry(client_id)
        if not 0 <= size_bytes <= entry.held[device]:
            raise InvalidRequest(
                f"client {client_id} frees {size_bytes} bytes of device {device}, of which it holds "
                f"{entry.held[device]}: it must free what it was granted"
            )
        self._hold(client_id, device, -size_bytes)

    def held_bytes(self, client_id: int, device: int) -> int:
        """What a client was granted of a device and did not give back, its allowance included."""
        entry = self._entries.get(client_id)
        return entry.held[device] if entry is not None else 0

    def look(self, client_id: int, standing_bytes: Sequence[int]) -> None:
        """The driver is about to be asked what a client's process uses; `standing_bytes` of what it holds (of each
        device) it does not use just now."""
        entry = self._entries.get(client_id)
        if entry is not None:
            entry.known = [held - idle for held, idle in zip(entry.held, standing_bytes, strict=True)]
            entry.contexts_then = list(entry.contexts)

    def reconcile(self, client_id: int, device: int, driver_bytes: int, standing_bytes: int) -> int | None:
        """Takes in what the driver says a client's process uses of a device: what is above what the client uses by its
        own account is overhead.

        The driver's figure is as old as its look; what the client used then lies between what it used when the look
        began and what it uses now. The overhead is changed no further than it must to agree with that. Of a process
        that made a context and that the driver says nothing of, the driver may not have made it yet: what was set
        aside for it stays until the next look. Returns what the driver takes for a context, where that is known now:
        where nothing else can be in the figure, and the look before found the same, as one that is being made takes
        less.
        """
        self._check_device(client_id, device)
        entry = self._entries.get(client_id)
        if entry is None or entry.dying or not entry.known:
            return None
        if driver_bytes:
            entry.missed.discard(device)
        elif entry.contexts[device] and device not in entry.missed:
            entry.missed.add(device)
            return None
        known_bytes = entry.held[device] - standing_bytes
        low, high = sorted((known_bytes, entry.known[device]))
        overhead_bytes = max(0, min(max(entry.overhead[device], driver_bytes - high), driver_bytes - low))
        same = overhead_bytes == entry.overhead[device]
        self._used[device] += overhead_bytes - entry.overhead[device]
        entry.overhead[device] = overhead_bytes
        entry.guessed.pop(device, None)
        if not driver_bytes or (same and low == high):
            self._unsure[device].pop(client_id, None)
        bare = low == high and entry.contexts[device] == entry.contexts_then[device] == 1 and overhead_bytes > 0
        return overhead_bytes if bare and same else None

    def client_gone(self, client_id: int) -> None:
        """A client's process is gone: what it had is dying."""
        entry = self._entries.get(client_id)
        if entry is None:
            return
        if any(entry.used_bytes(device) for device in range(len(self._used))):
            entry.dying = True
        else:
            self._forget(client_id)

    def driver_says(self, client_id: int, used_bytes: Sequence[int]) -> None:
        """The driver still lists a dying client's process, with so much of each device: that it has, whatever it had
        asked for. It lives on without us, or is not gone yet."""
        entry = self._entries.get(client_id)
        if entry is None or not entry.dying:
            return
        for device, size_bytes in enumerate(used_bytes):
            self._unsure[device].pop(client_id, None)
            self._used[device] += size_bytes - entry.used_bytes(device)
            entry.overhead[device] = min(entry.overhead[device], size_bytes)
            entry.held[device] = size_bytes - entry.overhead[device]

    def driver_freed(self, client_id: int) -> None:
        """The driver no longer lists a dying client's process."""
        entry = self._entries.get(client_id)
        if entry is None or not entry.dying:
            return
        for device in range(len(self._used)):
            self._used[device] -= entry.used_bytes(device)
        self._forget(client_id)

    def info(self, device: int) -> Info:
        """Cap and use of one device. Raises InvalidRequest where the allocation has no such device."""
        self._check_device(None, device)
        return Info(self._cap_bytes, self._used[device])

    def overhead_bytes(self, device: int) -> int:
        """What the driver took of one device by itself, for all clients together."""
        return sum(entry.overhead[device] for entry in self._entries.values())

    def client_bytes(self, client_id: int) -> int:
        """What one client has of all devices, its allowance included."""
        entry = self._entries.get(client_id)
        return sum(entry.used_bytes(device) for device in range(len(self._used))) if entry is not None else 0

    def dying(self) -> dict[int, int]:
        """The clients that are gone and whose memory the driver has not freed yet, and how many bytes each had."""
        return {client_id: self.client_bytes(client_id) for client_id, entry in self._entries.items() if entry.dying}

    def _guess(self, client_id: int, device: int, size_bytes: int) -> None:
        guessed = self._entry(client_id).guessed
        guessed[device] = guessed.get(device, 0) + size_bytes
        self._unsure[device][client_id] = self._unsure[device].get(client_id, 0) + size_bytes

    def _more_bytes(self, device: int) -> int:
        """By how much the guesses are above what a look has found since, and has still to find again."""
        unsure = self._unsure[device]
        return sum(max(0, guess - self._entries[each].overhead[device]) for each, guess in unsure.items())

    def _guessed_bytes(self, device: int) -> int:
        """What is set aside on a guess, and no look has found yet."""
        entries = (self._entries[each] for each in self._unsure[device])
        return sum(min(entry.guessed.get(device, 0), entry.overhead[device]) for entry in entries)

    def _forget(self, client_id: int) -> None:
        del self._entries[client_id]
        for unsure in self._unsure:
            unsure.pop(client_id, None)

    def _hold(self, client_id: int, device: int, size_bytes: int) -> None:
        self._entry(client_id).held[device] += size_bytes
        self._used[device] += size_bytes

    def _entry(self, client_id: int) -> Entry:
        entry = self._entries.get(client_id)
        if entry is None:
            devices = len(self._used)
            entry = self._entries[client_id] = Entry([0] * devices, [0] * devices, [0] * devices)
        return entry

    def _check_device(self, client_id: int | None, device: int) -> None:
        if not 0 <= device < len(self._used):
            who = "somebody" if client_id is None else f"client {client_id}"
            raise InvalidRequest(
                f"{who} names device {device} of an allocation that has {len(self._used)}: name one from 0"
            )
