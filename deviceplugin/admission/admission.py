"""A pod's admission: which units it had better get, and whether what it gets is right.

The kubelet admits one pod after another, so at each admission the ones before are complete: what it offers
and does not list is free, whatever the ledger says. What it lists is not free, whatever it offers.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from time import monotonic_ns

from deviceplugin.admission.check import check_assigned, check_units, check_unreserved
from deviceplugin.admission.unit_choice import Room, Wish, choose
from deviceplugin.allocations.lifetimes import Lasting, Lifetimes, in_doubt
from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.pods.applicants import Applicants
from deviceplugin.pods.pending_pods import Applicant
from deviceplugin.pods.podresources import Listings
from deviceplugin.units.ledger import Allocation, Owner, memory_left_mib
from deviceplugin.units.owners import shows
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import EdgeshareError, Unavailable
from edgeshare.contract.lifetime import Taking, goes_on, taking
from edgeshare.kube.threaded import in_time
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.log_limit import LogLimit
from edgeshare.log_trouble import Trouble

logger = logging.getLogger(__name__)

UNSURE_BURST = 30
"""Lines at once, and then six a minute: a kubelet that does not answer is asked about each allocation."""


@dataclass(frozen=True)
class Expected:
    """The units preferred last, and for whom, if that was known."""

    unit_ids: frozenset[str]
    applicant: Applicant | None


@dataclass(frozen=True)
class Seen:
    """What others said, before a choice that waits for nobody."""

    held: frozenset[str]
    """Units that the kubelet lists; without its list, all that is known of."""
    doubtful: list[Allocation]
    """The allocations of which the kubelet offers units and lists none."""
    lasting: Lasting
    found: list[Applicant]
    """Who may be asking."""


class Admission:
    """GetPreferredAllocation and Allocate. Both ask others first, and wait for none of each other meanwhile: what they
    saw counts if no units were handed out since, and is looked at anew otherwise."""

    def __init__(
        self,
        devices: Devices,
        store: Store,
        listings: Listings,
        applicants: Applicants,
        lifetimes: Lifetimes,
    ) -> None:
        self._devices = devices
        self._store = store
        self._listings = listings
        self._applicants = applicants
        self._lifetimes = lifetimes
        self._expected = Expected(frozenset(), None)
        self._unlisted = Trouble(logger, "choosing units without the kubelet's list")
        self._unknown = Trouble(logger, "choosing units without knowing for whom")
        self._to_nobody = Trouble(logger, "handing units out without knowing to whom")
        self._taken_for_live = LogLimit(UNSURE_BURST)
        self._handed_out = 0
        """How often units were, so that whoever looked before can tell."""

    async def prefer(self, available: Collection[str], must_include: Collection[str], size: int) -> list[str]:
        """The units that a container had better get, on the devices that it is assigned; none where no choice would be
        right, and Allocate says why.

        Raises InvalidRequest for an id that is none of ours or an assignment that is nonsense; NoRoom where there are
        units but no memory, or none on the assigned device; NotFound and Unavailable where that device is not there, or
        not healthy.
        """
        while True:
            handed_out = self._handed_out
            seen = await self._look(set(available) - set(must_include), size)
            if handed_out == self._handed_out:
                return self._choose(seen, Wish(available, must_include, seen.held, size))

    async def _look(self, offered: set[str], size: int) -> Seen:
        try:
            listing = await self._listings.list()
        except Unavailable as error:
            # A hint that fails would fail the pod. Without the list, all that we know of counts as held.
            self._unlisted.fails(error)
            held = frozenset(unit for allocation in self._store.ledger for unit in allocation.unit_ids)
            return Seen(held, [], Lasting(), [])
        self._unlisted.over()
        held = frozenset(unit for containers in listing.values() for units in containers.values() for unit in units)
        doubtful = self._store.ledger.touching(offered - held)
        try:
            async with in_time():
                lasting = await self._lifetimes.lasting(doubtful)
                found = await self._applicants.find(listing, size, lasting.idle)
            self._unknown.over()
        except Unavailable as error:
            # Its start asks again, and lets nobody start on a device that is not his.
            self._unknown.fails(error)
            lasting, found = in_doubt(doubtful), []
        return Seen(held, doubtful, lasting, found)

    def _choose(self, seen: Seen, wish: Wish) -> list[str]:
        lasting = {allocation.id for allocation in seen.lasting.allocations}
        for allocation in seen.doubtful:
            if allocation.id not in lasting and self._store.ledger.get(allocation.id) is allocation:
                logger.info("%s of %s is over: its units are offered again", allocation.id, allocation.owner)
                self._store.drop(allocation)
                # Whoever is listed under its pod's name is another one.
                self._applicants.refuse(allocation.applicant)
        applicant = self._applicants.only(self._of_pod(seen.found, wish.must_include), wish.size)
        owner = applicant.owner if applicant is not None else None
        own = [each for each in seen.lasting.idle if owner is not None and each.whose and each.whose.is_same(owner)]
        others = [each for each in seen.lasting.allocations if each not in own]
        held = {*wish.held, *(unit for each in others for unit in each.unit_ids)}
        chosen = _own_again(own, wish)
        if not chosen:
            try:
                chosen = choose(replace(wish, held=held), applicant, self._applicants.others(applicant), self._room())
            except EdgeshareError:
                if applicant is not None:
                    self._applicants.refuse(applicant.owner)
                raise
        self._expected = Expected(frozenset(chosen), applicant)
        return chosen

    def _of_pod(self, found: list[Applicant], must_include: Collection[str]) -> list[Applicant]:
        """The applicants of the pod whose earlier container has these units, if that is known."""
        before = [each.whose for each in self._store.ledger.touching(must_include)]
        of_pod = [each for each in found if any(whose is not None and whose.is_beside(each.owner) for whose in before)]
        return of_pod or found

    def _room(self) -> Room:
        left_mib = memory_left_mib(self._devices.by_id(), list(self._store.ledger))
        return Room(self._devices.now, left_mib, self._store.kind.word)

    async def allocate(self, requests: Iterable[Collection[str]]) -> api.AllocateResponse:
        """Hands out the units of each request, all or none. Raises what ``check_units`` raises,
        and Unavailable where the node's disk does not take it."""
        response = api.AllocateResponse()
        made: list[Allocation] = []
        with self._listings.allocating():
            try:
                for unit_ids in requests:
                    devices, allocation = await self._hand_out(unit_ids)
                    made.append(allocation)
                    response.container_responses.append(self._store.answer(devices, allocation))
            except EdgeshareError:
                for allocation in made:
                    self._store.drop(allocation)
                    self._applicants.refuse(allocation.applicant)
                raise
        return response

    async def _hand_out(self, unit_ids: Collection[str]) -> tuple[tuple[Device, ...], Allocation]:
        expected, self._expected = self._expected, Expected(frozenset(), None)
        preferred = expected.unit_ids == set(unit_ids)
        applicant = expected.applicant if preferred else None
        ledger, kind = self._store.ledger, self._store.kind
        try:
            check_units(unit_ids, self._devices.by_id(), [], kind)
            while True:
                touching = ledger.touching(unit_ids)
                held = [each for each in touching if await self._is_listed(each)]
                lasting, found = await self._ask(unit_ids, [each for each in touching if each not in held], preferred)
                # Another object where it was handed out anew meanwhile.
                if list(map(id, touching)) == list(map(id, ledger.touching(unit_ids))):
                    break
            if not preferred:
                applicant = self._applicants.only(found, len(unit_ids))
            live = [each for each in lasting.allocations if not _goes_on_to(applicant, each, lasting)]
            devices = check_units(unit_ids, self._devices.by_id(), [*held, *live], kind)
            if not preferred:
                if applicant is not None:
                    check_assigned(applicant, unit_ids)
                check_unreserved(unit_ids, self._applicants.others(applicant), list(ledger), kind.word)
            return devices, self._take(frozenset(unit_ids), applicant)
        except EdgeshareError:
            if applicant is not None:
                self._applicants.refuse(applicant.owner)
            raise

    async def _ask(
        self, unit_ids: Collection[str], doubtful: list[Allocation], preferred: bool
    ) -> tuple[Lasting, list[Applicant]]:
        """Which of these last, and who may be getting the units, where that is not known by a preference."""
        found = [] if preferred else await self._applicants.next_of_pod(unit_ids)
        try:
            async with in_time():
                lasting = await self._lifetimes.lasting(doubtful)
                if not preferred and not found:
                    found = await self._applicants.skipped(unit_ids, lasting.idle)
            self._to_nobody.over()
        except Unavailable as error:
            self._to_nobody.fails(error)
            lasting = in_doubt(doubtful)
        return lasting, found

    def _take(self, unit_ids: frozenset[str], applicant: Applicant | None) -> Allocation:
        self._handed_out += 1
        owner = applicant.owner if applicant is not None else None
        memory_mib = applicant.terms.memory_mib if applicant is not None and applicant.terms is not None else 0
        same = self._store.ledger.exactly(unit_ids)
        if same is None:
            return self._store.mint(unit_ids, memory_mib, owner)
        match _taking(same, owner):
            case Taking.NEW:
                self._store.drop(same)
                return self._store.mint(unit_ids, memory_mib, owner)
            case Taking.OVER if owner is not None and owner != same.applicant:
                taken = replace(same, applicant=owner, memory_mib=memory_mib)
            case Taking.OVER | Taking.AGAIN:
                # Another object: whoever has just found that nobody had it must see that somebody has it now.
                taken = replace(same)
        self._store.put(taken)
        return taken

    async def _is_listed(self, allocation: Allocation) -> bool:
        """Whether the kubelet says that its container has it; it says so of no plain init container."""
        owner = allocation.owner
        if owner is None or not owner.listed:
            return False
        try:
            containers = await self._listings.get(owner.namespace, owner.pod)
        except Unavailable as error:
            more = self._taken_for_live.ending(monotonic_ns())
            if more is not None:
                logger.warning("taking %s of %s for live: %s%s", allocation.id, owner, error, more)
            return True
        return shows(containers, owner, allocation.unit_ids)


def _taking(same: Allocation, owner: Owner | None) -> Taking:
    whose, before = same.whose, same.applicant
    return taking(
        is_same_container=owner is not None and whose is not None and whose.is_same(owner),
        has_owner=same.owner is not None,
        may_be_of_one_pod=before is None or owner is None or before.is_beside(owner),
    )


def _goes_on_to(applicant: Applicant | None, allocation: Allocation, lasting: Lasting) -> bool:
    whose = allocation.whose
    if applicant is None or whose is None:
        return False
    return goes_on(
        is_beside=whose.is_beside(applicant.owner),
        is_same_container=whose.is_same(applicant.owner),
        is_listed=whose.listed,
        is_idle=allocation in lasting.idle,
    )


def _own_again(own: list[Allocation], wish: Wish) -> list[str]:
    """The very units that the container had; none where they are not all to be had."""
    for allocation in own:
        if len(allocation.unit_ids) == wish.size and set(wish.must_include) <= allocation.unit_ids <= set(
            wish.available
        ):
            return sorted(allocation.unit_ids)
    return []
