"""The live allocations with all that lies on this node for them: ledger, record, preload file, socket
folder, CDI specs."""

import asyncio
import shutil
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from deviceplugin.allocations.records import Records
from deviceplugin.files import RECORD_BYTES_MAX, make_folder, write_file
from deviceplugin.inject.cdi import Specs, present
from deviceplugin.inject.library import Library
from deviceplugin.inject.response import Injected, answer, preload_text
from deviceplugin.live_config import Settings
from deviceplugin.units.ledger import Allocation, Ledger, Owner
from edgeshare.bounded_file import read, says
from edgeshare.contract.accelerator_kind import AcceleratorKind
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.lifetime import ABSENT, ENDING, State
from edgeshare.contract.names import CLIENTS_DIR
from edgeshare.contract.units import UNITS_PER_DEVICE
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.waiting import Change

MOUNTED = "library"
"""In an allocation's folder of the runtime directory: the path on this node of the library that its container mounts.
It tells what the kubelet mounts again where the state directory was lost, or another one is used."""

OWNER_ONLY = 0o700
"""Of the folder above the socket folders: a container reaches its own through a mount, and no other."""


class Store:
    """Changes the ledger and the disk together. ``leaving`` are the allocations that the manager may still have."""

    def __init__(
        self,
        kind: AcceleratorKind,
        ledgers: Mapping[AcceleratorKind, Ledger],
        records: Records,
        library: Library,
        runtime_dir: Path,
        settings: Settings,
        specs: Specs,
    ) -> None:
        """``ledgers`` are those of all kinds: the library is one for all of them."""
        self.kind = kind
        self.ledger = ledgers[kind]
        self.library = library
        self.leaving: set[str] = set()
        self.lost_units: frozenset[str] | None = None
        """Units that the kubelet says containers have, and no allocation has: the records are lost. None: it was not
        asked yet."""
        self._ledgers = ledgers
        self._ending: dict[str, Allocation] = {}
        self._unrecorded: set[str] = set()
        """Allocations of which there was something on disk at the start, but no record."""
        self._change = Change()
        self._records = records
        self._clients = runtime_dir / CLIENTS_DIR
        self._settings = settings
        self._specs = specs

    def next_change(self) -> asyncio.Event:
        """Set when the allocations are no longer what they are now."""
        return self._change.next

    def state(self, allocation_id: str) -> State:
        """Where an allocation is in its life, as far as it is known here."""
        allocation = self.ledger.get(allocation_id)
        if allocation is not None:
            return allocation.state
        return ENDING if allocation_id in self.leaving else ABSENT

    def shown(self) -> list[Allocation]:
        """The live allocations, and those that are over but that the manager may still have."""
        return [*self.ledger, *self._ending.values()]

    def load(self) -> None:
        """Takes in what was kept on disk. Of two records of the same units the younger is the live one."""
        self._records.remove_unfinished()
        for allocation in self._records.read():
            older = self.ledger.exactly(allocation.unit_ids)
            if older is not None:
                self._forget(older)
            self.ledger.put(allocation)
        for unread in self._records.ids() - {allocation.id for allocation in self.ledger}:
            self.library.keep(self._records.library(unread))
        found = self._records.ids() | {path.name for path in self._clients.glob("*")}
        self._unrecorded = {each for each in found if self.kind.owns(each) and not self._records.has(each)}

    def set_listed(self, unit_ids: Iterable[str]) -> None:
        """Which units containers have, as the kubelet says."""
        lost = frozenset(unit_ids).difference(*(allocation.unit_ids for allocation in self.ledger))
        if lost != self.lost_units:
            self.lost_units = lost
            self._change.tell()

    def remove_unrecorded(self, of_manager: Collection[str]) -> None:
        """Removes what lay there at the start for allocations without a record: a plugin that was killed had just begun
        them, or was just taking them back. Of one that the manager has the record was lost, and it may be mounted."""
        for allocation_id in self._unrecorded.difference(of_manager):
            if self.ledger.get(allocation_id) is None:
                self._records.remove(allocation_id)
                self.gone(allocation_id)
        self._unrecorded.intersection_update(of_manager)

    def mint(self, unit_ids: frozenset[str], memory_mib: int = 0, applicant: Owner | None = None) -> Allocation:
        """A new allocation of these units, with its socket folder; raises Unavailable where it cannot be
        made."""
        name = f"{self.kind.prefix}-{uuid.uuid4().hex}"
        allocation = Allocation(name, unit_ids, self.library.hash, applicant=applicant, memory_mib=memory_mib)
        self.put(allocation)
        return allocation

    def put(self, allocation: Allocation) -> None:
        """Adds an allocation or replaces the one of its id; raises Unavailable where the disk does not take
        it."""
        try:
            self._clients.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            make_folder(self._clients / allocation.id)
            self._keep_mounted(allocation)
        except OSError as error:
            raise Unavailable(f"allocation {allocation.id} gets no socket folder: {error}") from error
        terms = allocation.terms
        hooked = terms.hooked if terms else _is_part(allocation)
        self._records.write(allocation, preload_text(allocation.library, hooked))
        self.ledger.put(allocation)
        if allocation.cdi_names:
            self._specs.keep()
        self._change.tell()

    def mounted_library(self, allocation_id: str) -> str:
        """The hash of the library that an allocation's container mounts whose record is lost; empty where that cannot
        be told, or it lies elsewhere than this plugin keeps them."""
        preloaded = self._records.library(allocation_id)
        if preloaded:
            return preloaded
        try:
            mounted = Path(read(self._clients / allocation_id / MOUNTED, RECORD_BYTES_MAX).decode())
        except (OSError, ValueError):
            return ""
        return mounted.parent.name if mounted == self.library.path(mounted.parent.name) else ""

    def drop(self, allocation: Allocation) -> None:
        """Takes an allocation back. The manager has to be told: see ``leaving``."""
        self._forget(allocation)
        if allocation.library != self.library.hash:
            self.remove_old_libraries()

    def gone(self, allocation_id: str) -> None:
        """The manager does not have this one any more."""
        shutil.rmtree(self._clients / allocation_id, ignore_errors=True)
        self.leaving.discard(allocation_id)
        self._ending.pop(allocation_id, None)
        self._change.tell()

    def files(self, allocation: Allocation) -> Injected:
        """What the allocation's container mounts."""
        return Injected(
            library=self.library.path(allocation.library),
            library_hash=allocation.library,
            preload_file=self._records.preload_file(allocation.id),
            socket_folder=self._clients / allocation.id,
            hook_dir=self.kind.hook_dir,
        )

    def answer(self, devices: Iterable[Device], allocation: Allocation) -> api.ContainerAllocateResponse:
        """What Allocate tells the kubelet. Raises InvalidRequest as ``injection.answer`` does, and Unavailable as
        ``put``."""
        config = self._settings.now
        there = [present(device, config.inventory.root) for device in devices]
        response = answer(there, self.files(allocation), config.injection)
        cdi_names = tuple(device.name for device in response.cdi_devices)
        if cdi_names != allocation.cdi_names:
            self.put(replace(allocation, cdi_names=cdi_names))
        return response

    def remove_old_libraries(self) -> None:
        """Removes what no allocation of any kind mounts."""
        self.library.remove_all_but({each.library for ledger in self._ledgers.values() for each in ledger})

    def _keep_mounted(self, allocation: Allocation) -> None:
        file = self._clients / allocation.id / MOUNTED
        path = str(self.library.path(allocation.library)).encode()
        if allocation.library and not says(file, path):
            write_file(file, path)

    def _forget(self, allocation: Allocation) -> None:
        self.ledger.drop(allocation.id)
        self._records.remove(allocation.id)
        self.leaving.add(allocation.id)
        self._ending[allocation.id] = allocation
        self._change.tell()


def _is_part(allocation: Allocation) -> bool:
    return len(allocation.unit_ids) < UNITS_PER_DEVICE
