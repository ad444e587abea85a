"""Whose an allocation is: matching what we handed out with what the kubelet's PodResources lists."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.errors import NoRoom

Listing = Mapping[tuple[str, str], Mapping[str, frozenset[str]]]
"""(namespace, pod) → container → the units that it holds."""


def attach_owners(allocations: Iterable[Allocation], listing: Listing) -> list[Allocation]:
    """The allocations whose owner is known now, or is another one than was known. A new owner's terms are
    unknown."""
    held = [(_owner(pod, container), units) for pod, of in listing.items() for container, units in of.items()]
    owners: dict[frozenset[str], list[Owner]] = {}
    for owner, units in held:
        if units:
            owners.setdefault(units, []).append(owner)
    changed = []
    for allocation in allocations:
        found = owners.get(allocation.unit_ids, [])
        # Two containers with the same units: none may start, and PreStartContainer says so.
        if len(found) == 1 and (allocation.owner is None or not allocation.owner.is_same(found[0])):
            owner, applicant = found[0], allocation.applicant
            known = applicant is not None and applicant.is_same(owner)
            changed.append(replace(allocation, owner=applicant if known else owner, terms=None))
    return changed


def missing(allocations: Iterable[Allocation], listing: Listing) -> list[Allocation]:
    """The allocations with an owner that the listing does not show (any more)."""
    owned = [(allocation, allocation.owner) for allocation in allocations if allocation.owner]
    return [each for each, owner in owned if not shows(listing.get((owner.namespace, owner.pod)), owner, each.unit_ids)]


def shows(containers: Mapping[str, frozenset[str]] | None, owner: Owner, unit_ids: frozenset[str]) -> bool:
    """Whether an owner has these units, as far as what the kubelet says of its pod can tell: it says nothing of a plain
    init container, and None of a pod that it does not know."""
    return containers is not None and (not owner.listed or containers.get(owner.container) == unit_ids)


def is_superseded(allocation: Allocation, allocations: Iterable[Allocation], listing: Listing) -> bool:
    """Whether its container is listed with other units, which another allocation of it holds: a kubelet that lost its
    checkpoint gives a container new ones when it starts again."""
    owner = allocation.owner
    if owner is None or not owner.listed:
        return False
    units = listing.get((owner.namespace, owner.pod), {}).get(owner.container)
    return units != allocation.unit_ids and any(
        other.unit_ids == units and other.owner is not None and other.owner.is_same(owner) for other in allocations
    )


def unclaimed(allocations: Collection[Allocation], listing: Listing) -> list[Allocation]:
    """The allocations without an owner of which no container that is listed has a unit, and no allocation that has an
    owner: an init container's units go on to later containers of its pod."""
    held = {unit for containers in listing.values() for units in containers.values() for unit in units}
    held |= {unit for allocation in allocations if allocation.owner for unit in allocation.unit_ids}
    return [each for each in allocations if each.owner is None and not each.unit_ids & held]


def find_owner(unit_ids: frozenset[str], listing: Listing) -> Owner | None:
    """Who holds just these units; with an empty container name if it can only be an init container of that
    pod.

    A plain init container is not listed, but the containers after it take over its units. None: nobody who is
    listed has any of them. Raises NoRoom where containers of several pods hold some of them.
    """
    holders = [
        (_owner(pod, container), units)
        for pod, of in listing.items()
        for container, units in of.items()
        if units & unit_ids
    ]
    if len({(owner.namespace, owner.pod) for owner, _ in holders}) > 1:
        names = " and ".join(sorted(str(owner) for owner, _ in holders))
        raise NoRoom(f"the kubelet gave the same units to {names}: delete one of them")
    exact = [owner for owner, units in holders if units == unit_ids]
    if exact:
        return exact[0]
    return replace(holders[0][0], container="", listed=False) if holders else None


def _owner(pod: tuple[str, str], container: str) -> Owner:
    namespace, name = pod
    return Owner(namespace, name, container)
