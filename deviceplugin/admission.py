"""A pod's admission: which units it had better get, and whether what it gets is right.

The kubelet admits one pod after another, so at each admission the ones before are complete: what it offers
and does not list is free, whatever the ledger says. What it lists is not free, whatever it offers.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable

from deviceplugin.allocation import check_units
from deviceplugin.applicants import Applicants
from deviceplugin.devices import Devices
from deviceplugin.holdings import Holdings
from deviceplugin.ledger import Allocation, Terms
from deviceplugin.listings import Listings
from deviceplugin.preference import choose_units
from deviceplugin.room import memory_left_mib, needed_mib
from edgeshare.devices import Device
from edgeshare.errors import EdgeshareError, NoRoom, Unavailable
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.units import parse_unit_id

logger = logging.getLogger(__name__)


class Admission:
    """GetPreferredAllocation and Allocate."""

    def __init__(self, devices: Devices, holdings: Holdings, listings: Listings, applicants: Applicants) -> None:
        self._devices = devices
        self._holdings = holdings
        self._listings = listings
        self._applicants = applicants
        self._expected: tuple[frozenset[str], int] = (frozenset(), 0)
        """The units preferred last, and the memory that is asked for with them."""
        self._one_at_a_time = asyncio.Lock()

    async def prefer(self, available: Collection[str], must_include: Collection[str], size: int) -> list[str]:
        """The units that a container had better get; none where no choice would be right, and Allocate says why.

        Raises InvalidRequest for an id that is none of ours, and NoRoom where there are units but no memory.
        """
        async with self._one_at_a_time:
            offered = set(available) - set(must_include)
            try:
                listing = await self._listings.list()
            except Unavailable as error:
                # A hint that fails would fail the pod. Without the list, all that we know of counts as held.
                logger.warning("choosing units without the kubelet's list: %s", error)
                held = {unit for allocation in self._holdings.ledger for unit in allocation.unit_ids}
                terms = None
            else:
                held = {unit for containers in listing.values() for units in containers.values() for unit in units}
                for allocation in self._holdings.ledger.touching(offered - held):
                    logger.info("%s of %s is over: its units are offered again", allocation.id, allocation.owner)
                    self._holdings.drop(allocation)
                terms = await self._applicants.terms(listing, size)
            chosen = self._choose(available, must_include, held, size, terms)
            self._expected = (frozenset(chosen), terms.memory_mib if terms else 0)
            return chosen

    def _choose(
        self, available: Collection[str], must_include: Collection[str], held: set[str], size: int, terms: Terms | None
    ) -> list[str]:
        order = [device.id for device in self._devices.now]
        left_mib = memory_left_mib(self._devices.by_id(), list(self._holdings.ledger))
        tight = {
            device.id
            for device in self._devices.now
            if terms and left_mib[device.id] < needed_mib(device, terms.request_percent, terms.memory_mib)
        }
        without_room = {unit_id for unit_id in available if parse_unit_id(unit_id)[0] in tight}
        chosen = choose_units(available, must_include, held | without_room, size, order)
        if terms and not chosen and choose_units(available, must_include, held, size, order):
            # As many units there are, but where they are is no memory; at its start it would wait for that for ever.
            free = ", ".join(f"{left_mib[device_id]} MiB of {device_id}" for device_id in order)
            needed = f"{terms.memory_mib} MiB" if terms.memory_mib else "the same part of the memory"
            raise NoRoom(f"no {self._holdings.kind.word} has {size} units and {needed} free (free: {free})")
        return chosen

    async def allocate(self, requests: Iterable[Collection[str]]) -> api.AllocateResponse:
        """Hands out the units of each request, all or none. Raises what ``check_units`` raises, and
        Unavailable where the node's disk does not take it."""
        response = api.AllocateResponse()
        made: list[Allocation] = []
        with self._listings.allocating():
            async with self._one_at_a_time:
                try:
                    for unit_ids in requests:
                        devices, allocation = await self._hand_out(unit_ids)
                        made.append(allocation)
                        response.container_responses.append(self._holdings.answer(devices, allocation))
                except EdgeshareError:
                    for allocation in made:
                        self._holdings.drop(allocation)
                    raise
        return response

    async def _hand_out(self, unit_ids: Collection[str]) -> tuple[tuple[Device, ...], Allocation]:
        live = [
            allocation for allocation in self._holdings.ledger.touching(unit_ids) if await self._is_live(allocation)
        ]
        devices = check_units(unit_ids, self._devices.by_id(), live, self._holdings.kind)
        same = self._holdings.ledger.exactly(unit_ids)
        if same is not None and same.owner is None:
            # An init container's, which the next container of its pod takes over; or it never came to a
            # start.
            return devices, same
        if same is not None:
            self._holdings.drop(same)
        expected, memory_mib = self._expected
        return devices, self._holdings.mint(frozenset(unit_ids), memory_mib if expected == set(unit_ids) else 0)

    async def _is_live(self, allocation: Allocation) -> bool:
        """Whether a container that the kubelet lists holds it. One that it offers again and has never listed
        is an init container's of the same pod, or over: PreStartContainer makes sure once more."""
        owner = allocation.owner
        if owner is None or not owner.listed:
            return False
        try:
            containers = await self._listings.get(owner.namespace, owner.pod)
        except Unavailable as error:
            logger.warning("taking %s of %s for live: %s", allocation.id, owner, error)
            return True
        return containers is not None and containers.get(owner.container) == allocation.unit_ids
