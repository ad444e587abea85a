"""The ledger of one allocation and the allowance words of its clients, which together say what is used."""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from cuda_hook.gate import DEVICES_MAX, GatePages
from edgeshare.contract.units import MIB
from sharemgr.node.memory.entry import Info, Verdict
from sharemgr.node.memory.ledger import Ledger

logger = logging.getLogger(__name__)


class Sizes(Protocol):
    """By device id, what a context takes of it in bytes: a dict, or what keeps them over restarts."""

    def get(self, device_id: str, otherwise: int, /) -> int:
        """What is known of a device."""

    def __setitem__(self, device_id: str, size_bytes: int, /) -> None:
        """This is known of it now."""


class Memory:
    """What the clients of one allocation use of its devices. Nothing here waits.

    An allowance word may say anything; of what it says, so much counts as its client really holds.
    """

    def __init__(
        self,
        allocation_id: str,
        cap_bytes: int,
        device_ids: tuple[str, ...],
        context_bytes: Sizes,
        context_refused: Callable[[str], None] = lambda _: None,
        unseen_context_bytes: int = 0,
    ) -> None:
        """``cap_bytes`` is of each device; ``context_bytes`` by device id is what a context takes, as measured:
        shared by all allocations of a node. ``context_refused`` gets what is to be said of a context that did not fit:
        once for each size that one has, however often it is tried. Where none was measured, ``unseen_context_bytes``
        are set aside for one, or what is free where that is less: a guess makes less of what is said to be free, has
        an answer wait for the driver, and refuses nothing."""
        self.refused_context_bytes = 0
        """What the last context took that did not fit under the cap; 0 once one fitted."""
        self._allocation_id = allocation_id
        self._device_ids = device_ids
        self._context_bytes = context_bytes
        self._ledger = Ledger(cap_bytes, len(device_ids))
        self._peaks = [0] * len(device_ids)
        self._pages: dict[int, GatePages] = {}
        self._context_refused = context_refused
        self._unseen_context_bytes = unseen_context_bytes
        self._refused_mib: set[int] = set()
        self._making: set[int] = set()  # clients that have asked for nothing since they asked for a context
        self._made: set[int] = set()  # the others, when the last look at the driver began
        self._predecessors: dict[int, list[int]] = {}  # by the id of a client that has not declared all yet

    @property
    def clients(self) -> int:
        """How many there are."""
        return len(self._pages)

    def join(self, client_id: int, pages: GatePages) -> None:
        """A client came."""
        self._pages[client_id] = pages
        self._ledger.join(client_id)
        self._predecessors[client_id] = []

    def succeed(self, client_id: int, dying_id: int) -> None:
        """A client is the process that was the dying one, and declares now what it has: so much goes over to it, and
        the rest it has no more. It has declared all when it says anything else."""
        if client_id in self._predecessors:
            self._predecessors[client_id].append(dying_id)
        else:
            self._ledger.driver_freed(dying_id)

    def declared(self, client_id: int) -> None:
        """A client has said what it has from before, if it had anything."""
        for dying_id in self._predecessors.pop(client_id, ()):
            self._ledger.driver_freed(dying_id)

    def leave(self, client_id: int) -> bool:
        """A client is gone. True when the driver has still to free what it used."""
        for device in range(len(self._device_ids)):
            self._take_back(client_id, device)
        self._pages.pop(client_id, None)
        self._making.discard(client_id)
        self._predecessors.pop(client_id, None)
        self._ledger.client_gone(client_id)
        return client_id in self._ledger.dying()

    def reserve(self, client_id: int, device: int, size_bytes: int, waits: bool = False) -> Verdict:
        """May a client take so much? Before anything is refused, all take part with what they hold and do not use.
        Where it hangs on what is set aside on a guess, the verdict says so if the answer can wait until the driver was
        looked at; else that is not set aside any more. Raises InvalidRequest for what cannot be meant."""
        self._making.discard(client_id)
        verdict = self._ledger.reserve(client_id, device, size_bytes)
        if not verdict.granted:
            self._take_all_back(device)
            verdict = self._ledger.reserve(client_id, device, size_bytes)
            if verdict.unsure and not waits:
                self._ledger.forget_guesses(device)
                verdict = self._ledger.reserve(client_id, device, size_bytes)
            self._note(device, 0)
        elif device < DEVICES_MAX:
            pages = self._pages[client_id]
            standing_bytes = self._standing_bytes(client_id, device)
            if len(self._pages) == 1:
                self._note(device, standing_bytes)
            more_bytes = self._ledger.allow(client_id, device, standing_bytes)
            if more_bytes:
                pages.allow(device, more_bytes)
        return verdict

    def reserve_context(self, client_id: int, device: int) -> Verdict:
        """May a client make a context? Raises InvalidRequest for what cannot be meant."""
        size_bytes, guess = self._expected(device)
        verdict = self._ledger.reserve_context(client_id, device, size_bytes, guess)
        if not verdict.granted:
            self._take_all_back(device)
            # Of others' contexts, too, the size is known by now.
            self._ledger.forget_guesses(device, size_bytes)
            verdict = self._ledger.reserve_context(client_id, device, size_bytes, guess)
        if verdict.granted:
            self._making.add(client_id)
        self.refused_context_bytes = 0 if verdict.granted else size_bytes
        if not verdict.granted:
            self._tell_refused(device, -(-size_bytes // MIB), verdict.free_bytes // MIB)
        return verdict

    def declare_context(self, client_id: int, device: int) -> None:
        """A client has a context from before. Raises InvalidRequest for what cannot be."""
        predecessors = self._predecessors.get(client_id, ())
        if not any(self._ledger.inherit_context(client_id, dying_id, device) for dying_id in predecessors):
            self._ledger.declare_context(client_id, device, *self._expected(device))

    def context_ended(self, client_id: int, device: int) -> None:
        """A client has a context less. Raises InvalidRequest where it made none."""
        size_bytes = self._context_size_bytes(device) or self._unseen_context_bytes
        self._ledger.context_ended(client_id, device, size_bytes)

    def declare(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client has this much from before. Raises InvalidRequest for what cannot be."""
        self._ledger.declare(client_id, device, size_bytes - self._inherit(client_id, device, size_bytes))

    def freed(self, client_id: int, device: int, size_bytes: int) -> None:
        """A client holds this much no more. Raises InvalidRequest where it did not hold it."""
        self._ledger.freed(client_id, device, size_bytes)

    def info(self, device: int) -> Info:
        """Cap and use of one device. Raises InvalidRequest where there is no such device."""
        info = self._ledger.info(device)
        idle_bytes = sum(self._standing_bytes(client_id, device) for client_id in self._pages)
        self._note(device, idle_bytes)
        return Info(info.cap_bytes, info.used_bytes - idle_bytes)

    def peak_bytes(self, device: int) -> int:
        """The most of one device that was in use at once, as far as it was seen: when a client asked that is alone, or
        for more than was free, and at each look. What one got and gave back in between is missed."""
        return self._peaks[device]

    def overhead_bytes(self, device: int) -> int:
        """What the driver took of one device by itself, for all clients together."""
        return self._ledger.overhead_bytes(device)

    def used_bytes(self) -> int:
        """What all clients use of all devices."""
        return sum(self.info(device).used_bytes for device in range(len(self._device_ids)))

    def client_bytes(self, client_id: int) -> int:
        """What one client uses of all devices."""
        return self._ledger.client_bytes(client_id) - sum(self._idle(client_id))

    def dying(self) -> dict[int, int]:
        """The clients that are gone and whose memory the driver has not freed yet, and how many bytes each had."""
        return self._ledger.dying()

    def driver_says(self, client_id: int, driver_bytes: Mapping[str, int]) -> None:
        """Takes in what the driver says that a dying client's process still uses, by device id: it has lost its
        connection, not its memory, and may never come back."""
        self._ledger.driver_says(client_id, [driver_bytes.get(device_id, 0) for device_id in self._device_ids])

    def driver_freed(self, client_id: int) -> None:
        """The driver no longer lists a dying client's process."""
        self._ledger.driver_freed(client_id)

    def look(self) -> None:
        """The driver is about to be asked what each process uses."""
        self._made = self._pages.keys() - self._making
        idle = {client_id: self._idle(client_id) for client_id in self._pages}
        for client_id, idle_bytes in idle.items():
            self._ledger.look(client_id, idle_bytes)
        for device in range(len(self._device_ids)):
            self._note(device, sum(idle_bytes[device] for idle_bytes in idle.values()))

    def reconcile(self, client_id: int, driver_bytes: Mapping[str, int], again: bool = False) -> None:
        """Takes in what the driver says that a client's process uses, by device id, as far as it says it. Of one that
        has still to declare what it has, that counts for the one that it was. ``again``: so soon after another look
        that a context which is being made takes as much as then."""
        if self._predecessors.get(client_id) or (again and client_id not in self._made):
            return
        for device, device_id in enumerate(self._device_ids):
            if again and driver_bytes.get(device_id) == 0:
                continue
            if device_id not in driver_bytes:
                # What is not told is not nothing: what was measured before goes on. A guess would do so for good.
                self._ledger.forget_guess(client_id, device)
                continue
            standing_bytes = self._standing_bytes(client_id, device)
            context_bytes = self._ledger.reconcile(client_id, device, driver_bytes[device_id], standing_bytes)
            if context_bytes is not None:
                # Code that was loaded since counts in it, too: the least that was seen is nearest to a bare context.
                known_bytes = self._context_bytes.get(device_id, context_bytes)
                self._context_bytes[device_id] = min(context_bytes, known_bytes)
            if self._ledger.info(device).free_bytes == 0:
                # What the driver took by itself was taken from nobody: no allowance may stand in its place.
                self._take_all_back(device)

    def _note(self, device: int, idle_bytes: int) -> None:
        """Of what is held so much is used by nobody. To read it from the pages only for this would cost each answer."""
        used_bytes = self._ledger.info(device).used_bytes - idle_bytes
        self._peaks[device] = max(used_bytes, self._peaks[device])

    def _tell_refused(self, device: int, context_mib: int, free_mib: int) -> None:
        # A program that starts again and again is refused each time.
        if context_mib in self._refused_mib:
            return
        self._refused_mib.add(context_mib)
        message = (
            f"a context on device {device} takes about {context_mib} MiB, as last measured, and {free_mib} MiB of the "
            f"cap of {self._ledger.info(device).cap_bytes // MIB} MiB are free: raise the cap (edge/gpu-memory-mib, "
            "--memory-mib) to what all contexts and the program itself need"
        )
        logger.warning("allocation %s: %s", self._allocation_id, message)
        self._context_refused(message)

    def _inherit(self, client_id: int, device: int, size_bytes: int) -> int:
        """What of that its predecessors had."""
        inherited_bytes = 0
        for dying_id in self._predecessors.get(client_id, ()):
            inherited_bytes += self._ledger.inherit(client_id, dying_id, device, size_bytes - inherited_bytes)
        return inherited_bytes

    def _context_size_bytes(self, device: int) -> int:
        self._ledger.info(device)
        return self._context_bytes.get(self._device_ids[device], 0)

    def _expected(self, device: int) -> tuple[int, bool]:
        """What is set aside for a context, in bytes, and whether that is a guess."""
        size_bytes = self._context_size_bytes(device)
        return size_bytes or min(self._unseen_context_bytes, self._ledger.info(device).free_bytes), not size_bytes

    def _standing_bytes(self, client_id: int, device: int) -> int:
        pages = self._pages.get(client_id)
        return min(pages.standing_bytes(device), self._ledger.held_bytes(client_id, device)) if pages else 0

    def _idle(self, client_id: int) -> list[int]:
        return [self._standing_bytes(client_id, device) for device in range(len(self._device_ids))]

    def _take_all_back(self, device: int) -> None:
        for client_id in self._pages:
            self._take_back(client_id, device)

    def _take_back(self, client_id: int, device: int) -> None:
        pages = self._pages.get(client_id)
        if pages is not None:
            taken_bytes = pages.take_back(device, self._ledger.held_bytes(client_id, device))
            self._ledger.freed(client_id, device, taken_bytes)
