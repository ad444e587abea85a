"""Ledger, kubelet and manager are compared: owners are learned, and what containers no longer have is taken back."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

from deviceplugin.admission.identity import Identity
from deviceplugin.allocations.lifetimes import Lifetimes
from deviceplugin.allocations.manager_client import Manager
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.pods.podresources import Listings
from deviceplugin.units.ledger import Allocation, Owner, Terms
from deviceplugin.units.owners import Listing, attach_owners, is_superseded, missing, unclaimed
from deviceplugin.units.preference import by_device
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.lifetime import ABSENT, Doubt, has_ended
from edgeshare.contract.units import UNITS_PER_DEVICE

logger = logging.getLogger(__name__)


class Comparison:
    """Of the allocations of one kind of device."""

    def __init__(
        self,
        devices: Devices,
        store: Store,
        listings: Listings,
        identity: Identity,
        lifetimes: Lifetimes,
        manager: Manager,
    ) -> None:
        self._devices = devices
        self._store = store
        self._listings = listings
        self._identity = identity
        self._lifetimes = lifetimes
        self._manager = manager
        self.telling = asyncio.Lock()
        """Kept by whoever tells the manager of allocations. Nobody waits for one that asks the API server."""

    async def compare(self) -> None:
        """Learns the owners of new allocations, and takes back those of pods that are over, from the manager
        too.

        Raises Unavailable where kubelet or manager cannot be asked; what was not done is done next time.
        """
        # One that is handed out meanwhile may be too young for this list.
        before = {allocation.id: allocation for allocation in self._store.ledger}
        listing = await self._listings.list()
        for allocation in attach_owners(self._unchanged(before), listing):
            self._store.put(allocation)
            before[allocation.id] = allocation
        self._store.set_listed(
            unit for containers in listing.values() for units in containers.values() for unit in units
        )
        over, unknown = await self._over(before, listing)
        for allocation in over:
            if self._store.ledger.get(allocation.id) is allocation:
                logger.info("%s of %s is over", allocation.id, allocation.owner or allocation.applicant or "nobody")
                self._store.drop(allocation)
        await self._compare_with_manager(listing)
        if unknown is not None:
            raise unknown

    async def tell_leaving(self) -> None:
        """Has the manager let go of those that are over; by whoever keeps ``telling``."""
        for allocation_id in sorted(self._store.leaving):
            await self._manager.remove(allocation_id)
            self._store.gone(allocation_id)

    async def _over(
        self, before: Mapping[str, Allocation], listing: Listing
    ) -> tuple[list[Allocation], Unavailable | None]:
        """Which have ended, of those that are as they were before the list; and why it is not known of all. An API
        server that does not answer is asked once, and not for each of them."""
        found: list[tuple[Allocation, Doubt, bool | None]] = []
        unknown = None
        try:
            async for doubtful in self._doubtful(before, listing):
                found.append(doubtful)
        except Unavailable as error:
            unknown = error

        def ended(having_clients: set[str]) -> list[Allocation]:
            return [
                allocation
                for allocation, doubt, pod_is_over in found
                if has_ended(doubt, has_clients=allocation.id in having_clients, pod_is_over=pod_is_over)
            ]

        # The manager is asked only where its word decides.
        return (ended(await self._lifetimes.having_clients()) if ended(set()) else []), unknown

    async def _doubtful(
        self, before: Mapping[str, Allocation], listing: Listing
    ) -> AsyncIterator[tuple[Allocation, Doubt, bool | None]]:
        """Each that may have ended, why, and whether its pod is over. Raises Unavailable where the API server cannot be
        asked."""
        for allocation in missing(self._unchanged(before), listing):
            assert allocation.owner is not None
            if is_superseded(allocation, self._store.ledger, listing):
                yield allocation, Doubt.SUPERSEDED, None
            else:
                yield allocation, Doubt.MISSING, await self._lifetimes.is_over(allocation.owner)
        for allocation in unclaimed(list(self._store.ledger), listing):
            if before.get(allocation.id) is allocation:
                yield allocation, Doubt.UNCLAIMED, await self._identity.is_nobodys(allocation, listing)

    def _unchanged(self, before: Mapping[str, Allocation]) -> list[Allocation]:
        return [allocation for allocation in self._store.ledger if before.get(allocation.id) is allocation]

    async def _compare_with_manager(self, listing: Listing) -> None:
        known = {allocation.id for allocation in self._store.ledger} | self._store.leaving
        of_manager = await self._manager.list()
        try:
            for each in of_manager:
                # One that was known before the manager was asked may have gone from both meanwhile.
                if self._store.kind.owns(each.id) and each.id not in known and self._store.state(each.id) is ABSENT:
                    await self._take_in(each, listing)
        finally:
            self._store.remove_unrecorded({each.id for each in of_manager})
            async with self.telling:
                await self.tell_leaving()

    async def _take_in(self, unrecorded: Allocation, listing: Listing) -> None:
        """An allocation that only the manager knows, because the record was lost or a removal did not get
        through."""
        owner = unrecorded.owner
        assert owner is not None
        units = listing.get((owner.namespace, owner.pod), {}).get(owner.container, frozenset())
        if units and self._store.ledger.exactly(units) is None:
            logger.warning("the record of %s of %s was lost: made anew from the manager's", unrecorded.id, owner)
            library = self._store.mounted_library(unrecorded.id)
            self._store.put(
                replace(
                    unrecorded,
                    unit_ids=units,
                    library=library,
                    terms=self._hooked(unrecorded.terms, units),
                    memory_mib=unrecorded.terms.memory_mib if unrecorded.terms else 0,
                )
            )
        elif await self._unrecorded_has_ended(unrecorded.id, owner) and self._store.state(unrecorded.id) is ABSENT:
            logger.info("%s of %s is over", unrecorded.id, owner)
            self._store.leaving.add(unrecorded.id)

    async def _unrecorded_has_ended(self, allocation_id: str, owner: Owner) -> bool:
        over = await self._lifetimes.is_over(owner)
        running = await self._lifetimes.having_clients() if over else set()
        return has_ended(Doubt.MISSING, has_clients=allocation_id in running, pod_is_over=over)

    def _hooked(self, terms: Terms | None, units: frozenset[str]) -> Terms:
        """The manager fills in a whole device's memory for a cap that was not asked for."""
        assert terms is not None
        devices = self._devices.by_id()
        whole_mib = min(
            (devices[device_id].memory_mib for device_id in by_device(units) if device_id in devices), default=0
        )
        return replace(terms, hooked=terms.request_percent < UNITS_PER_DEVICE or 0 < terms.memory_mib < whole_mib)
