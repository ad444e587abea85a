"""The last check before a container starts. An error here leaves the pod pending, and the kubelet tries again."""

from collections.abc import Collection

from deviceplugin.admission.check import check_memory
from deviceplugin.admission.comparison import Comparison
from deviceplugin.admission.identity import Identity
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.contract.errors import NoRoom, NotFound


class PreStart:
    """PreStartContainer."""

    def __init__(
        self, devices: Devices, store: Store, identity: Identity, comparison: Comparison, manager: Manager
    ) -> None:
        self._devices = devices
        self._store = store
        self._identity = identity
        self._comparison = comparison
        self._manager = manager

    async def start(self, unit_ids: Collection[str]) -> None:
        """Lets the container start that has these units: it has the hook, and the manager knows whose they
        are.

        May be called again for a container that starts again. Raises an EdgeshareError that says why it may
        not start.
        """
        compared = False
        while True:
            identified = await self._identified(unit_ids)
            try:
                if await self._let_in(identified):
                    return
            except NoRoom:
                if compared:
                    raise
                # Pods that are over may still count.
                compared = True
                await self._comparison.compare()

    async def _identified(self, unit_ids: Collection[str]) -> Allocation:
        """The allocation of these units, kept with its owner and terms. It asks others, so nobody waits for it."""
        while True:
            allocation = self._store.ledger.exactly(unit_ids)
            if allocation is None:
                raise NotFound("these units were not handed out here, or the record of it is lost: make the pod anew")
            identified = await self._identity.identify(allocation)
            if self._store.ledger.get(allocation.id) is allocation:
                check_memory(identified, self._devices.by_id(), self._store.kind.word)
                if identified.library or identified.terms is None or identified.terms.hooked:
                    self._store.library.check(identified.library)
                self._store.put(identified)
                return identified

    async def _let_in(self, allocation: Allocation) -> bool:
        """Tells the manager of it; False where it has changed since it was looked at."""
        async with self._comparison.telling:
            if self._store.ledger.get(allocation.id) is not allocation:
                return False
            await self._comparison.tell_leaving()
            for other in self._store.ledger.touching(allocation.unit_ids):
                # An init container's of the same pod: it has ended, or this would not be starting.
                if other.id != allocation.id:
                    await self._manager.remove(other.id)
            await self._add(allocation)
            return True

    async def _add(self, allocation: Allocation) -> None:
        owner, terms = allocation.owner, allocation.terms
        assert owner is not None
        assert terms is not None
        await self._manager.add(allocation.id, sorted(by_device(allocation.unit_ids)), owner, terms)
