"""A pod's admission: which units it had better get, and whether what it gets is right.

The kubelet admits one pod after another, so at each admission the ones before are complete: what it offers
and does not list is free, whatever the ledger says. What it lists is not free, whatever it offers.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from deviceplugin.allocation import check_units, check_unreserved
from deviceplugin.applicants import Applicants
from deviceplugin.bound import Applicant
from deviceplugin.choice import Room, Wish, choose
from deviceplugin.devices import Devices
from deviceplugin.holdings import Holdings
from deviceplugin.ledger import Allocation, Owner
from deviceplugin.listings import Listings
from deviceplugin.room import memory_left_mib
from edgeshare.devices import Device
from edgeshare.errors import EdgeshareError, Unavailable
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Expected:
    """The units preferred last, and for whom, if that was known."""

    unit_ids: frozenset[str]
    applicant: Applicant | None


class Admission:
    """GetPreferredAllocation and Allocate."""

    def __init__(self, devices: Devices, holdings: Holdings, listings: Listings, applicants: Applicants) -> None:
        self._devices = devices
        self._holdings = holdings
        self._listings = listings
        self._applicants = applicants
        self._expected = Expected(frozenset(), None)
        self._one_at_a_time = asyncio.Lock()

    async def prefer(self, available: Collection[str], must_include: Collection[str], size: int) -> list[str]:
        """The units that a container had better get, on the devices that it is assigned; none where no choice would be
        right, and Allocate says why.

        Raises InvalidRequest for an id that is none of ours or an assignment that is nonsense; NoRoom where there are
        units but no memory, or none on the assigned device; NotFound and Unavailable where that device is not there, or
        not healthy.
        """
        async with self._one_at_a_time:
            offered = set(available) - set(must_include)
            applicant: Applicant | None = None
            try:
                listing = await self._listings.list()
            except Unavailable as error:
                # A hint that fails would fail the pod. Without the list, all that we know of counts as held.
                logger.warning("choosing units without the kubelet's list: %s", error)
                held = {unit for allocation in self._holdings.ledger for unit in allocation.unit_ids}
            else:
                held = {unit for containers in listing.values() for units in containers.values() for unit in units}
                for allocation in self._holdings.ledger.touching(offered - held):
                    logger.info("%s of %s is over: its units are offered again", allocation.id, allocation.owner)
                    self._holdings.drop(allocation)
                    # Whoever is listed under its pod's name is another one.
                    self._applicants.refuse(allocation.applicant)
                applicant = await self._applicants.find(listing, size)
            wish = Wish(available, must_include, held, size)
            try:
                chosen = choose(wish, applicant, self._applicants.others(applicant), self._room())
            except EdgeshareError:
                if applicant is not None:
                    self._applicants.refuse(applicant.owner)
                raise
            self._expected = Expected(frozenset(chosen), applicant)
            return chosen

    def _room(self) -> Room:
        left_mib = memory_left_mib(self._devices.by_id(), list(self._holdings.ledger))
        return Room(self._devices.now, left_mib, self._holdings.kind.word)

    async def allocate(self, requests: Iterable[Collection[str]]) -> api.AllocateResponse:
        """Hands out the units of each request, all or none. Raises what ``check_units`` raises,
        and Unavailable where the node's disk does not take it."""
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
                        self._applicants.refuse(allocation.applicant)
                    raise
        return response

    async def _hand_out(self, unit_ids: Collection[str]) -> tuple[tuple[Device, ...], Allocation]:
        expected, self._expected = self._expected, Expected(frozenset(), None)
        was_preferred = expected.unit_ids == set(unit_ids)
        applicant = expected.applicant if was_preferred else None
        try:
            live = [
                allocation for allocation in self._holdings.ledger.touching(unit_ids) if await self._is_live(allocation)
            ]
            devices = check_units(unit_ids, self._devices.by_id(), live, self._holdings.kind)
            if not was_preferred:
                applicant = await self._applicants.skipped(unit_ids)
                others = self._applicants.others(applicant)
                check_unreserved(unit_ids, others, list(self._holdings.ledger))
            return devices, self._take(frozenset(unit_ids), applicant)
        except EdgeshareError:
            if applicant is not None:
                self._applicants.refuse(applicant.owner)
            raise

    def _take(self, unit_ids: frozenset[str], applicant: Applicant | None) -> Allocation:
        owner = applicant.owner if applicant is not None else None
        memory_mib = applicant.terms.memory_mib if applicant is not None and applicant.terms is not None else 0
        same = self._holdings.ledger.exactly(unit_ids)
        if same is not None and same.owner is None and _may_take_over(same.applicant, owner):
            # An init container's, which the next container of its pod takes over; or it never came to a
            # start.
            if owner is not None and owner != same.applicant:
                taken = replace(same, applicant=owner, memory_mib=memory_mib)
            else:
                # Another object: whoever has just found that nobody had it must see that somebody has it now.
                taken = replace(same)
            self._holdings.put(taken)
            return taken
        if same is not None:
            self._holdings.drop(same)
        return self._holdings.mint(unit_ids, memory_mib, owner)

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


def _may_take_over(before: Owner | None, after: Owner | None) -> bool:
    return before is None or after is None or before.pod_uid == after.pod_uid
