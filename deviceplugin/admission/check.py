"""Why a container may not have the units that it is given, or assigned: what the kubelet chose is right, or the pod
must not start with it. What is checked of units that are chosen is decided and worded here; that none can be chosen is
in ``unit_choice``, and that nobody knows whose they are in ``identity`` and ``pods.applicants``. A pod's user reads
these errors, so they carry no percent sign, which events mangle."""

from collections.abc import Collection, Iterable, Mapping

from deviceplugin.pods.pending_pods import Applicant, reserved_units
from deviceplugin.units.ledger import Allocation, Owner
from deviceplugin.units.preference import by_device
from edgeshare.contract.accelerator_kind import GPU, AcceleratorKind
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest, NoRoom, NotFound, Unavailable
from edgeshare.contract.names import GPU_MEMORY_MIB
from edgeshare.contract.units import UNITS_PER_DEVICE, parse_request_percent


def check_units(
    unit_ids: Collection[str], devices: Mapping[str, Device], live: Iterable[Allocation], kind: AcceleratorKind = GPU
) -> tuple[Device, ...]:
    """The devices, by index, that one container gets with these units: one device for a part, each of them
    whole for a multiple of 100.

    ``devices`` are the node's, by id; ``live`` the allocations of other containers. Raises InvalidRequest for a size
    that is never granted, NotFound for a unit of no device here, Unavailable for a device that is not
    healthy, and NoRoom where the units lie across devices or are held by a live container.
    """
    if len(set(unit_ids)) != len(unit_ids):
        raise InvalidRequest("the kubelet named a unit twice: restart the kubelet")
    _, units_each = parse_request_percent(len(unit_ids))
    chosen = by_device(unit_ids)
    for device_id in sorted(chosen):
        check_healthy(device_of(device_id, devices, kind.word), kind.word)
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


def device_of(device_id: str, devices: Mapping[str, Device], word: str, assigned_to: Owner | None = None) -> Device:
    """The device of that id, which a container has, or is assigned; raises NotFound where it is not there."""
    if device_id in devices:
        return devices[device_id]
    if assigned_to is None:
        raise NotFound(f"this node has no {word} {device_id} (any more): make the pod anew")
    whose = f"{word} {device_id}, which {assigned_to} is assigned,"
    raise NotFound(f"{whose} is not on this node (any more): make the pod anew")


def check_healthy(device: Device, word: str, assigned_to: Owner | None = None) -> None:
    """Raises Unavailable, with the cause, for a device that is not healthy."""
    if not device.healthy:
        whose = f", which {assigned_to} is assigned," if assigned_to is not None else ""
        raise Unavailable(f"{word} {device.id}{whose} is not healthy: {device.cause}")


def check_memory(allocation: Allocation, devices: Mapping[str, Device], word: str) -> None:
    """Raises NotFound where a device of it is not there any more, InvalidRequest where its container asks for more
    memory than one has. Its terms are known."""
    assert allocation.terms is not None
    for device_id in sorted(by_device(allocation.unit_ids)):
        memory_mib = device_of(device_id, devices, word).memory_mib
        if allocation.terms.memory_mib > memory_mib:
            raise InvalidRequest(
                f"{allocation.owner}: {GPU_MEMORY_MIB} is {allocation.terms.memory_mib}, "
                f"but {word} {device_id} has {memory_mib}: ask for at most that"
            )


def check_assigned(applicant: Applicant, unit_ids: Collection[str]) -> None:
    """Raises NoRoom where these are not units of the devices that it was assigned."""
    chosen = by_device(unit_ids)
    if applicant.devices is not None and set(applicant.devices) != set(chosen):
        raise NoRoom(
            f"{applicant.owner} is assigned {' and '.join(applicant.devices)}, but its units would be of "
            f"{' and '.join(sorted(chosen))}: make the pod anew"
        )


def check_unreserved(
    unit_ids: Collection[str], others: Iterable[Applicant], held: Iterable[Allocation], word: str = "GPU"
) -> None:
    """Raises NoRoom where, with these units gone, a device has fewer left than are assigned to ``others``, which are
    still to be admitted."""
    taken = by_device({*unit_ids, *(unit for allocation in held for unit in allocation.unit_ids)})
    reserved = reserved_units(others)
    for device_id in sorted(by_device(unit_ids)):
        if reserved.get(device_id, 0) > UNITS_PER_DEVICE - len(taken[device_id]):
            raise NoRoom(
                f"{reserved[device_id]} units of {word} {device_id} are assigned to pods that are still to be "
                "admitted: make the pod anew"
            )


def _spread(size: int, counts: Mapping[str, int], word: str) -> str:
    chosen = ", ".join(f"{count} of {device_id}" for device_id, count in sorted(counts.items()))
    if size < UNITS_PER_DEVICE:
        return f"no single {word} has {size} of {UNITS_PER_DEVICE} units free (the kubelet chose {chosen})"
    count = size // UNITS_PER_DEVICE
    return f"{size} units are {count} whole {word}s, but fewer are wholly free (the kubelet chose {chosen})"
