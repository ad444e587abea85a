"""The last check before a container starts, and taking back what containers no longer have.

Both tell the manager, so one waits for the other. An error here leaves the pod pending, and the kubelet tries
again.
"""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace

from deviceplugin.devices import Devices
from deviceplugin.holdings import Holdings
from deviceplugin.identity import Identity
from deviceplugin.ledger import Allocation, Terms
from deviceplugin.listings import Listings
from deviceplugin.manager import Manager
from deviceplugin.owners import Listing, attach_owners, missing, unclaimed
from deviceplugin.preference import by_device
from edgeshare.errors import EdgeshareError, InvalidRequest, NoRoom, NotFound
from edgeshare.names import GPU_MEMORY_MIB
from edgeshare.units import UNITS_PER_DEVICE

logger = logging.getLogger(__name__)


class Starting:
    """PreStartContainer, and the comparison of ledger, kubelet and manager."""

    def __init__(
        self,
        devices: Devices,
        holdings: Holdings,
        listings: Listings,
        identity: Identity,
        manager: Manager,
    ) -> None:
        self._devices = devices
        self._holdings = holdings
        self._listings = listings
        self._identity = identity
        self._manager = manager
        self._one_at_a_time = asyncio.Lock()

    async def start(self, unit_ids: Collection[str]) -> None:
        """Lets the container start that has these units: it has the hook, and the manager knows whose they
        are.

        May be called again for a container that starts again. Raises an EdgeshareError that says why it may
        not start.
        """
        async with self._one_at_a_time:
            allocation = self._holdings.ledger.exactly(unit_ids)
            if allocation is None:
                raise NotFound("these units were not handed out here, or the record of it is lost: make the pod anew")
            identified = await self._identity.identify(allocation)
            self._check_memory(identified)
            self._holdings.library.check(identified.library)
            if self._holdings.ledger.get(allocation.id) is not allocation:
                raise NotFound(f"allocation {allocation.id} was taken back meanwhile: the pod is over")
            self._holdings.put(identified)
            await self._tell_leaving()
            for other in self._holdings.ledger.touching(unit_ids):
                # An init container's of the same pod: it has ended, or this would not be starting.
                if other.id != identified.id:
                    await self._manager.remove(other.id)
            try:
                await self._add(identified)
            except NoRoom:
                # Pods that are over may still count.
                await self._compare()
                await self._add(identified)

    async def compare(self) -> None:
        """Learns the owners of new allocations, and takes back those of pods that are over, from the manager
        too.

        Raises Unavailable where kubelet or manager cannot be asked; what was not done is done next time.
        """
        async with self._one_at_a_time:
            await self._compare()

    async def _add(self, allocation: Allocation) -> None:
        owner, terms = allocation.owner, allocation.terms
        assert owner is not None
        assert terms is not None
        await self._manager.add(allocation.id, sorted(by_device(allocation.unit_ids)), owner, terms)

    def _check_memory(self, allocation: Allocation) -> None:
        assert allocation.terms is not None
        devices = self._devices.by_id()
        for device_id in sorted(by_device(allocation.unit_ids)):
            if device_id not in devices:
                raise NotFound(f"this node has no {self._holdings.kind.word} {device_id} (any more): make the pod anew")
            memory_mib = devices[device_id].memory_mib
            if allocation.terms.memory_mib > memory_mib:
                raise InvalidRequest(
                    f"{allocation.owner}: {GPU_MEMORY_MIB} is {allocation.terms.memory_mib}, "
                    f"but GPU {device_id} has {memory_mib}: ask for at most that"
                )

    async def _compare(self) -> None:
        # One that is handed out meanwhile may be too young for this list.
        before = {allocation.id: allocation for allocation in self._holdings.ledger}
        listing = await self._listings.list()
        for allocation in attach_owners(self._holdings.ledger, listing):
            self._holdings.put(allocation)
        over = []
        for allocation in missing(self._holdings.ledger, listing):
            assert allocation.owner is not None
            if await self._identity.is_over(allocation.owner):
                over.append(allocation)
        for allocation in unclaimed(list(self._holdings.ledger), listing):
            if before.get(allocation.id) is allocation and await self._identity.is_nobodys(allocation, listing):
                over.append(allocation)
        running = await self._running() if over else set()
        for allocation in over:
            if allocation.id not in running and self._holdings.ledger.get(allocation.id) is allocation:
                logger.info("%s of %s is over", allocation.id, allocation.owner or allocation.applicant or "nobody")
                self._holdings.drop(allocation)
        known = {allocation.id for allocation in self._holdings.ledger} | self._holdings.leaving
        of_manager = await self._manager.list()
        for stranger in of_manager:
            if self._holdings.kind.owns(stranger.id) and stranger.id not in known:
                await self._take_in(stranger, listing)
        self._holdings.remove_unrecorded({each.id for each in of_manager})
        await self._tell_leaving()

    async def _running(self) -> set[str]:
        """The allocations whose processes run: those of a pod that was deleted by force can outlive it."""
        try:
            return await self._manager.having_clients()
        except EdgeshareError as error:
            # Anybody may use that socket up: then the kubelet's and the API server's word has to do.
            logger.warning("taking allocations of pods that are over for unused: %s", error)
            return set()

    async def _take_in(self, stranger: Allocation, listing: Listing) -> None:
        """An allocation that only the manager knows, because the record was lost or a removal did not get
        through."""
        owner = stranger.owner
        assert owner is not None
        units = listing.get((owner.namespace, owner.pod), {}).get(owner.container, frozenset())
        if units and self._holdings.ledger.exactly(units) is None:
            logger.warning("the record of %s of %s was lost: made anew from the manager's", stranger.id, owner)
            library = self._holdings.library.hash
            self._holdings.put(
                replace(
                    stranger,
                    unit_ids=units,
                    library=library,
                    terms=self._hooked(stranger.terms, units),
                    memory_mib=stranger.terms.memory_mib if stranger.terms else 0,
                )
            )
        elif await self._identity.is_over(owner):
            logger.info("%s of %s is over", stranger.id, owner)
            self._holdings.leaving.add(stranger.id)

    def _hooked(self, terms: Terms | None, units: frozenset[str]) -> Terms:
        """The manager fills in a whole device's memory for a cap that was not asked for."""
        assert terms is not None
        devices = self._devices.by_id()
        whole_mib = min(
            (devices[device_id].memory_mib for device_id in by_device(units) if device_id in devices), default=0
        )
        return replace(terms, hooked=terms.request_percent < UNITS_PER_DEVICE or 0 < terms.memory_mib < whole_mib)

    async def _tell_leaving(self) -> None:
        for allocation_id in sorted(self._holdings.leaving):
            await self._manager.remove(allocation_id)
            self._holdings.gone(allocation_id)
