"""Which units a container had better get, of those that the kubelet offers: on the devices that it is assigned, or else
where they pack well, away from what is assigned to others."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from deviceplugin.admission.check import check_healthy, device_of
from deviceplugin.pods.pending_pods import Applicant, reserved_mib, reserved_units
from deviceplugin.units.preference import by_device, choose_units
from edgeshare.contract.devices import Device
from edgeshare.contract.errors import NoRoom
from edgeshare.contract.units import memory_cap_mib, parse_request_percent, parse_unit_id


@dataclass(frozen=True)
class Wish:
    """What the kubelet asks."""

    available: Collection[str]
    must_include: Collection[str]
    """Units of an earlier container of the same pod."""
    held: Collection[str]
    """Units of live containers, whatever the kubelet offers."""
    size: int


@dataclass(frozen=True)
class Room:
    """The node's devices, and how much memory of each is promised to nobody yet."""

    devices: Sequence[Device]
    left_mib: Mapping[str, int]
    word: str = "GPU"
    """What people call such a device."""


def choose(wish: Wish, applicant: Applicant | None, others: Collection[Applicant], room: Room) -> list[str]:
    """The units, sorted, or none where no choice would be right and Allocate says why. ``others`` are still to be
    admitted.

    Raises NoRoom where the device that it is assigned has no room, or none has the memory, or all that has is assigned
    to others; NotFound and Unavailable where the assigned device is not there, or not healthy.
    """
    if applicant is not None and applicant.devices is not None:
        return _assigned(wish, applicant, applicant.devices, room)
    return _packed(wish, applicant, others, room)


def _assigned(wish: Wish, applicant: Applicant, assigned: Sequence[str], room: Room) -> list[str]:
    devices = {device.id: device for device in room.devices}
    for device_id in assigned:
        check_healthy(device_of(device_id, devices, room.word, applicant.owner), room.word, applicant.owner)
    _, units_each = parse_request_percent(wish.size)
    there = {unit_id for unit_id in wish.available if parse_unit_id(unit_id)[0] in assigned}
    chosen = choose_units(there, wish.must_include, wish.held, wish.size, assigned)
    if not chosen:
        # The kubelet would take others, of another device.
        free = by_device((there - set(wish.held)) | set(wish.must_include))
        counts = " and ".join(f"{len(free.get(device_id, ()))} of {device_id}" for device_id in assigned)
        raise NoRoom(
            f"{applicant.owner} is assigned {units_each} units of {room.word} {' and '.join(assigned)}, "
            f"but free are {counts}: make the pod anew"
        )
    for device_id in assigned:
        if device_id in _tight(applicant, room.devices, room.left_mib):
            raise NoRoom(
                f"{applicant.owner} is assigned {room.word} {device_id}, "
                f"which has only {room.left_mib[device_id]} MiB free: make the pod anew"
            )
    return chosen


def _packed(wish: Wish, applicant: Applicant | None, others: Collection[Applicant], room: Room) -> list[str]:
    order = [device.id for device in room.devices]

    def fitting(left_mib: Mapping[str, int], held: Collection[str]) -> list[str]:
        tight = _tight(applicant, room.devices, left_mib)
        without_room = {unit_id for unit_id in wish.available if parse_unit_id(unit_id)[0] in tight}
        return choose_units(wish.available, wish.must_include, {*held, *without_room}, wish.size, order)

    spoken_for_mib = reserved_mib(others, {device.id: device for device in room.devices})
    left_mib = {device_id: left - spoken_for_mib.get(device_id, 0) for device_id, left in room.left_mib.items()}
    chosen = fitting(left_mib, {*wish.held, *_spoken_for(wish, reserved_units(others))})
    if not chosen and fitting(room.left_mib, wish.held):
        raise NoRoom(f"where {wish.size} units are free, they are assigned to pods that are still to be admitted")
    if (
        not chosen
        and applicant
        and applicant.terms
        and choose_units(wish.available, wish.must_include, wish.held, wish.size, order)
    ):
        # As many units there are, but where they are is no memory; at its start it would wait for that for ever.
        free = ", ".join(f"{room.left_mib[device_id]} MiB of {device_id}" for device_id in order)
        memory_mib = applicant.terms.memory_mib
        needed = f"{memory_mib} MiB" if memory_mib else "the same part of the memory"
        raise NoRoom(f"no {room.word} has {wish.size} units and {needed} free (free: {free})")
    return chosen


def _tight(applicant: Applicant | None, devices: Sequence[Device], left_mib: Mapping[str, int]) -> set[str]:
    """The devices that have not the memory that it asks for."""
    terms = applicant.terms if applicant is not None else None
    if terms is None:
        return set()
    needed_mib = {d.id: memory_cap_mib(terms.memory_mib, d.memory_mib, terms.request_percent) for d in devices}
    return {device_id for device_id, needed in needed_mib.items() if left_mib[device_id] < needed}


def _spoken_for(wish: Wish, reserved: Mapping[str, int]) -> set[str]:
    """As many free units of each device as are assigned to others; which ones they will get, is open."""
    free = by_device(set(wish.available) - set(wish.held) - set(wish.must_include))
    return {unit for device_id, units in free.items() for unit in sorted(units)[: reserved.get(device_id, 0)]}
