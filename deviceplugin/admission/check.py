"""The hard check of Allocate: what the kubelet chose is right, or the pod must not start with it."""

from collections.abc import Collection, Iterable, Mapping

from deviceplugin.pods.pending_pods import Applicant, reserved_units
from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.contract.accelerator_kind import GPU, AcceleratorKind
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.units import UNITS_PER_DEVICE, parse_request_percent


def check_units(
    unit_ids: Collection[str], devices: Mapping[str, Device], live: Iterable[Allocation], kind: AcceleratorKind = GPU
) -> tuple[Device, ...]:
    """The devices, by index, that one container gets with these units: one device for a part, each of them
    whole for a multiple of 100.

    ``devices`` are the node's, by id; ``live`` the allocations of other containers. Every error is one that
    the pod's user reads, so it carries no percent sign, which events mangle. Raises InvalidRequest for a size
    that is never granted, NotFound for a unit of no device here, Unavailable for a device that is not
    healthy, and NoRoom where the units lie across devices or are held by a live container.
    """
    if len(set(unit_ids)) != len(unit_ids):
        raise InvalidRequest("the kubelet named a unit twice: restart the kubelet")
    _, units_each = parse_request_percent(len(unit_ids))
    chosen = by_device(unit_ids)
    for device_id in sorted(chosen):
        if device_id not in devices:
            raise NotFound(f"this node has no {kind.word} {device_id} (any more): make the pod anew")
        if not devices[device_id].healthy:
            raise Unavailable(f"{kind.word} {device_id} is not healthy: {devices[device_id].cause}")
    if any(len(units) != units_each for units in chosen.values()):
        raise NoRoom(_spread(len(unit_ids), {device_id: len(units) for device_id, units in chosen.items()}, kind.word))
    for allocation in live:
        common = sorted(allocation.unit_ids & set(unit_ids))
        if common:
            raise NoRoom(
                f"{len(common)} of these units, {common[0]} among them, are held by {allocation.whose}: "
                "make the pod anew"
            )
    return tuple(sorted((devices[device_id] for device_id in chosen), key=lambda device: device.index))


def check_unreserved(unit_ids: Collection[str], others: Iterable[Applicant], held: Iterable[Allocation]) -> None:
    """Raises NoRoom where, with these units gone, a device has fewer left than are assigned to ``others``, which are
    still to be admitted."""
    taken = by_device({*unit_ids, *(unit for allocation in held for unit in allocation.unit_ids)})
    reserved = reserved_units(others)
    for device_id in sorted(by_device(unit_ids)):
        if reserved.get(device_id, 0) > UNITS_PER_DEVICE - len(taken[device_id]):
            raise NoRoom(
                f"{reserved[device_id]} units of GPU {device_id} are assigned to pods that are still to be admitted: "
                "make the pod anew"
            )


def _spread(size: int, counts: Mapping[str, int], word: str) -> str:
    chosen = ", ".join(f"{count} of {device_id}" for device_id, count in sorted(counts.items()))
    if size < UNITS_PER_DEVICE:
        return f"no single {word} has {size} of {UNITS_PER_DEVICE} units free (the kubelet chose {chosen})"
    count = size // UNITS_PER_DEVICE
    return f"{size} units are {count} whole {word}s, but fewer are wholly free (the kubelet chose {chosen})"
