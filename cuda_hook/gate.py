"""The manager's side of a client's two pages: the gate, which it alone writes, and the hints."""

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any, Self

from cuda_hook._core import ffi, lib

GRANT_NUMBER_MAX = (1 << (32 - lib.ES_GATE_NUMBER_SHIFT)) - 1
"""The word's upper bits: after this the numbers start again at 1."""

BESIDE_OTHERS = lib.ES_BESIDE_OTHERS
"""Others' gates may be open, too, or what they have queued may still run."""

BESIDE_TELLS = lib.ES_BESIDE_TELLS
"""It gives its grant back once it has drained, as in turns."""

NO_PLACE = lib.ES_SIBLINGS_MAX
"""Of a client that has none in its allocation's siblings page."""

DEVICES_MAX = lib.ES_DEVICES_MAX
"""Devices of one allocation that have an allowance; of others each allocation is asked for."""

# linux/fcntl.h; Python's fcntl has no name for it before 3.14. Linux 5.1 and later.
_F_SEAL_FUTURE_WRITE = 0x0010
_SEALS_SIZE = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class GatePages:
    """One client's gate page and hint page.

    ``fds`` (gate, hint) go to the client with WELCOME; they can be closed once sent (``close_fds``). Where
    the kernel can (Linux 5.1), the gate's file is sealed so that nobody but this object can ever write to it;
    on older ones a client that means to could, and only its own gate. Neither file can change its size.
    """

    def __init__(self, gate_fd: int, hint_fd: int, gate_map: mmap.mmap, hint_map: mmap.mmap) -> None:
        self._fds: tuple[int, ...] = (gate_fd, hint_fd)
        self._gate_map = gate_map
        self._hint_map = hint_map
        self._gate: Any = ffi.cast("struct es_gate_page *", ffi.from_buffer(gate_map))
        self._hint: Any = ffi.cast("struct es_hint_page *", ffi.from_buffer(hint_map))
        self._drained_at: Any = ffi.new("uint64_t *")

    @classmethod
    def create(cls, epoch: int, place: int = NO_PLACE) -> Self:
        """Makes both pages, the gate closed. ``epoch`` (1 to 2^32 − 1) tells a manager's life from others; ``place`` is
        the client's in the siblings page. Raises OSError where there is no descriptor left."""
        gate_fd, gate_map = _page("edgeshare-gate")
        try:
            hint_fd, hint_map = _page("edgeshare-hint")
        except OSError:
            os.close(gate_fd)
            raise
        pages = cls(gate_fd, hint_fd, gate_map, hint_map)
        pages._gate.epoch = epoch
        pages._gate.place = place
        _seal(gate_fd, _SEALS_SIZE | _F_SEAL_FUTURE_WRITE | fcntl.F_SEAL_SEAL)
        _seal(hint_fd, _SEALS_SIZE | fcntl.F_SEAL_SEAL)
        return pages

    @property
    def fds(self) -> tuple[int, ...]:
        """(gate, hint), or nothing after close_fds."""
        return self._fds

    def close_fds(self) -> None:
        """Closes the descriptors, once they are sent: 64 clients would be 128 of them. The pages stay."""
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    def open(
        self,
        number: int,
        contended: bool,
        now_ns: int,
        free_at_ns: int = 0,
        ends_at_ns: int = 0,
        beside: int = 0,
        cap_ns: int = 0,
    ) -> None:
        """Lets the client launch under grant ``number`` (1 to GRANT_NUMBER_MAX), and wakes who waits for it.

        It launches from ``free_at_ns`` on: then nothing of others is queued before it, as far as is known.
        Before ``ends_at_ns`` (0: unknown) it is not called back, so that until then more may be queued. ``beside`` says
        how it is held beside others, 0: alone; a client of version 1 does not read it. While contended it keeps at most
        ``cap_ns`` queued (0: as WELCOME says). Also changes all of that of a grant that goes on; one that was closed
        is given back whatever comes, so that its gate is opened anew under another number.
        """
        if not 1 <= number <= GRANT_NUMBER_MAX:
            raise ValueError(f"grant number {number} is not within 1 to {GRANT_NUMBER_MAX}")
        lib.es_gate_open(self._gate, number, contended, now_ns, free_at_ns, ends_at_ns, beside, cap_ns)

    def prolong(self, ends_at_ns: int) -> None:
        """Moves the time before which the grant is not called back."""
        lib.es_gate_prolong(self._gate, ends_at_ns)

    def close(self) -> None:
        """Calls the grant back."""
        lib.es_gate_close(self._gate)

    def promise(self, looks_at_ns: int) -> None:
        """Says that somebody asks ``left`` then, so that what is left before need not be sent."""
        lib.es_gate_promise(self._gate, looks_at_ns)

    def left(self, known: int, record: Any) -> int | None:
        """Copies the RELEASE that the client left into ``record`` (a C structure, unchecked) and returns when it says
        that it had drained; None where that is none, or that of grant ``known``."""
        if not lib.es_hint_left(self._hint, known, record, self._drained_at):
            return None
        drained_at_ns: int = self._drained_at[0]
        return drained_at_ns

    def discard(self) -> None:
        """Closes the gate for ever: the client has to connect anew."""
        lib.es_gate_discard(self._gate)

    def name_devices(self, uuids: Sequence[bytes]) -> None:
        """Says which devices the allocation has: UUIDs of 16 bytes in its order, zeros where one has none."""
        for place, uuid in zip(self._gate.device_uuids, uuids, strict=False):
            ffi.memmove(place, uuid, lib.ES_UUID_BYTES)

    def allow(self, device: int, size_bytes: int) -> None:
        """Adds to what the client may take of a device without asking."""
        lib.es_allowance_put(self._hint, device, size_bytes)

    def standing_bytes(self, device: int) -> int:
        """What the client says it holds of a device and does not use; it may say anything."""
        return lib.es_allowance_standing(self._hint, device) if device < DEVICES_MAX else 0

    def take_back(self, device: int, most_bytes: int) -> int:
        """Takes that away from the client, even from one that sleeps; ``most_bytes`` is what it really holds. Returns
        what was there to take."""
        return lib.es_allowance_take_back(self._hint, device, most_bytes) if device < DEVICES_MAX else 0

    def take(self, device: int, size_bytes: int) -> bool:
        """What a client does before it asks the driver: takes so much, if it is there."""
        return bool(lib.es_allowance_take(self._hint, device, size_bytes))

    def used(self, into: Any) -> None:
        """Copies what the client says that it has used into ``into``, a ``struct es_used *``: each member whole, all of
        them zero where it speaks version 1. It may say anything."""
        lib.es_hint_used(self._hint, into)

    def hinted_end_ns(self) -> int:
        """When the client thinks that what it has queued is done; 0: it did not say. It may say anything."""
        ends_at_ns: int = self._hint.ends_at_ns
        return ends_at_ns

    def hinted_hand_over_ns(self) -> int:
        """How long the device usually takes to come to the client; 0: it did not say. It may say anything."""
        hand_over_ns: int = self._hint.hand_over_ns
        return hand_over_ns

    def hinted_backlog_ns(self) -> int:
        """How much GPU time the client thinks it has queued; it may say anything."""
        backlog_ns: int = self._hint.backlog_ns
        return backlog_ns


class SiblingsPage:
    """Where the processes of one allocation tell each other whether they use the device. ``fd`` goes to each with its
    WELCOME. They all write it, and it may say anything; who has which place is known here."""

    def __init__(self) -> None:
        self.fd, self._map = _page("edgeshare-siblings")
        _seal(self.fd, _SEALS_SIZE | fcntl.F_SEAL_SEAL)
        self._buffer = ffi.from_buffer(self._map)
        self._page: Any = ffi.cast("struct es_siblings_page *", self._buffer)
        self._taken: set[int] = set()
        self._places = 0  # never less again: the sum over all would not tell what was done in one that went
        self._nameless = 0

    def take(self, writes: bool) -> int:
        """A place for one more client; NO_PLACE where all are taken, or it does not write the page."""
        place = next((each for each in range(NO_PLACE) if each not in self._taken), NO_PLACE) if writes else NO_PLACE
        if place == NO_PLACE:
            self._nameless += 1
        else:
            self._taken.add(place)
            self._places = max(self._places, place + 1)
        self._tell()
        return place

    def give(self, place: int) -> None:
        """The client that had it is gone, and uses the device no more."""
        if place == NO_PLACE:
            self._nameless -= 1
        else:
            self._taken.remove(place)
            lib.es_siblings_use(self._page, place, False)
        self._tell()

    def close(self) -> None:
        """Closes its descriptors and the mapping; the clients' own stay. Who leaves after that tells nobody."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            self._page = ffi.new("struct es_siblings_page *")
            ffi.release(self._buffer)
            self._map.close()

    def _tell(self) -> None:
        self._page.nameless = self._nameless
        self._page.places = self._places


def _page(name: str) -> tuple[int, mmap.mmap]:
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(fd, lib.ES_PAGE_BYTES)
        return fd, mmap.mmap(fd, lib.ES_PAGE_BYTES)
    except OSError:
        os.close(fd)
        raise


def _seal(fd: int, seals: int) -> None:
    try:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except OSError:
        # Before Linux 5.1 F_SEAL_FUTURE_WRITE is an invalid argument; the others came with memfd.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals & ~_F_SEAL_FUTURE_WRITE)
