"""The live allocations with all that lies on this node for them: ledger, record, preload file, socket
folder."""

import shutil
import uuid
from pathlib import Path

from deviceplugin.files import make_folder
from deviceplugin.injection import Injected, preload_text
from deviceplugin.ledger import Allocation, Ledger
from deviceplugin.library import Library
from deviceplugin.records import Records
from edgeshare.errors import Unavailable
from edgeshare.names import CLIENTS_DIR
from edgeshare.units import UNITS_PER_DEVICE

OWNER_ONLY = 0o700
"""Of the folder above the socket folders: a container reaches its own through a mount, and no other."""


class Holdings:
    """Changes the ledger and the disk together. ``leaving`` are the allocations that the manager may still
    have."""

    def __init__(self, records: Records, library: Library, runtime_dir: Path) -> None:
        self.ledger = Ledger()
        self.library = library
        self.leaving: set[str] = set()
        self._records = records
        self._clients = runtime_dir / CLIENTS_DIR

    def load(self) -> None:
        """Takes in what was kept on disk. Of two records of the same units the younger is the live one."""
        for allocation in self._records.read():
            older = self.ledger.exactly(allocation.unit_ids)
            if older is not None:
                self.drop(older)
            self.ledger.put(allocation)

    def mint(self, unit_ids: frozenset[str], memory_mib: int = 0) -> Allocation:
        """A new allocation of these units, with its socket folder; raises Unavailable where it cannot be
        made."""
        allocation = Allocation(f"gpu-{uuid.uuid4().hex}", unit_ids, self.library.hash, memory_mib=memory_mib)
        self.put(allocation)
        return allocation

    def put(self, allocation: Allocation) -> None:
        """Adds an allocation or replaces the one of its id; raises Unavailable where the disk does not take
        it."""
        try:
            self._clients.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            make_folder(self._clients / allocation.id)
        except OSError as error:
            raise Unavailable(f"allocation {allocation.id} gets no socket folder: {error}") from error
        terms = allocation.terms
        hooked = terms.hooked if terms else len(allocation.unit_ids) < UNITS_PER_DEVICE
        self._records.write(allocation, preload_text(allocation.library, hooked))
        self.ledger.put(allocation)

    def drop(self, allocation: Allocation) -> None:
        """Takes an allocation back. The manager has to be told: see ``leaving``."""
        self.ledger.drop(allocation.id)
        self._records.remove(allocation.id)
        self.leaving.add(allocation.id)

    def gone(self, allocation_id: str) -> None:
        """The manager does not have this one any more."""
        shutil.rmtree(self._clients / allocation_id, ignore_errors=True)
        self.leaving.discard(allocation_id)

    def files(self, allocation: Allocation) -> Injected:
        """What the allocation's container mounts."""
        return Injected(
            library=self.library.path(allocation.library),
            library_hash=allocation.library,
            preload_file=self._records.preload_file(allocation.id),
            socket_folder=self._clients / allocation.id,
        )
