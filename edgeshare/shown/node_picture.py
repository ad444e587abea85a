"""A node's picture by its manager's status. Pure."""

from collections.abc import Iterator

from edgeshare.contract.guarantee import Guarantee
from edgeshare.contract.share_class import class_of
from edgeshare.contract.units import MIB
from edgeshare.shown.picture import Device, Node, Picture, Share, Waiting, line
from edgeshare.shown.words import device_name, is_exclusive, milliseconds, owner_text, state_text, unmanaged_text
from edgeshare.v1.status_pb2 import ALLOCATION_STATE_WAITING, AllocationStatus, DeviceStatus, NodeStatus

Used = dict[tuple[str, str], float]
"""Percent of a device that was used, by device and allocation."""


def node_picture(status: NodeStatus) -> Picture:
    """What is shown of it."""
    having: dict[str, list[AllocationStatus]] = {device.id: [] for device in status.devices}
    for share in status.allocations:
        for device_id in share.allocation.device_ids:
            having.setdefault(device_id, []).append(share)
    owners = {share.allocation.id: line(owner_text(share.allocation)) for share in status.allocations}
    devices = [_device(device, having[device.id], owners) for device in status.devices]
    waiting = [each for device in status.devices for each in _waiting(device, having[device.id], owners)]
    return Picture(nodes=[Node(name="", fault="", stale="", devices=devices)], waiting=waiting, notice="", nobody="")


def used_of(status: NodeStatus) -> Used:
    """Which part of each device each allocation used, of the status's window."""
    return {
        (line(device_id), line(share.allocation.id)): share.gpu_percent
        for share in status.allocations
        for device_id in share.allocation.device_ids
    }


def _device(device: DeviceStatus, having: list[AllocationStatus], owners: dict[str, str]) -> Device:
    return Device(
        id=line(device.id),
        name=line(device_name(device)),
        model=line(device.model),
        cause="" if device.healthy else line(device.cause) or "not healthy",
        mode=_mode(device, having),
        temperature_c=device.temperature_c if device.HasField("temperature_c") else None,
        memory_mib=device.memory_mib,
        memory_used_mib=device.memory_used_mib if device.memory_mib else None,
        warning=f"used past the hook: {unmanaged_text(device)}" if device.unmanaged_processes else "",
        shares=[_share(device, each, owners) for each in having],
    )


def _mode(device: DeviceStatus, having: list[AllocationStatus]) -> str:
    if len(having) < 2:
        return ""
    if is_exclusive(device):
        return "one at a time, until it closes it"
    return "several at once" if any(each.beside for each in having) else "in turns"


def _share(device: DeviceStatus, share: AllocationStatus, owners: dict[str, str]) -> Share:
    allocation = share.allocation
    guarantee = Guarantee(share.wanted_percent, share.due_percent, share.gpu_percent)
    place = list(allocation.device_ids).index(device.id)
    used_bytes = share.memory_bytes[place] if place < len(share.memory_bytes) else share.memory_used_bytes
    return Share(
        id=line(allocation.id),
        owner=owners[allocation.id],
        asked_percent=allocation.request_percent,
        limit_percent=allocation.limit_percent,
        used_percent=round(share.gpu_percent, 1),
        state=state_text(share, is_exclusive(device)),
        waits=share.state == ALLOCATION_STATE_WAITING,
        guarantee="missed" if guarantee.missed else "met",
        memory_mib=allocation.memory_mib,
        memory_used_mib=used_bytes // MIB if device.memory_mib else None,
        facts=_facts(device, share, owners),
    )


def _facts(device: DeviceStatus, share: AllocationStatus, owners: dict[str, str]) -> list[tuple[str, str]]:
    facts = [
        ("wanted", f"{share.wanted_percent:.1f} %"),
        ("of what it was due it got", f"{100 * share.guarantee_met_ratio:.0f} %"),
        ("held", f"{share.held_percent:.1f} %"),
        ("lent to it", f"{share.lent_percent:.1f} %"),
        ("queued", milliseconds(share.queued_ns)),
        ("waits now for", milliseconds(share.waiting_ns)),
        ("longest wait", milliseconds(share.longest_wait_ns)),
        ("class", class_of(share.allocation.share_class)),
        ("processes", str(sum(not client.dying for client in share.clients))),
        ("allocation", line(share.allocation.id)),
    ]
    if device.process_memory_unknown and share.clients:
        facts.insert(-1, ("memory", "at least what is shown: the driver does not say what contexts take"))
    if share.waiting_allocations:
        waiting = ", ".join(owners.get(each, line(each)) for each in share.waiting_allocations)
        facts.insert(-1, ("who waits for it", line(waiting)))
    return facts


def _waiting(device: DeviceStatus, having: list[AllocationStatus], owners: dict[str, str]) -> Iterator[Waiting]:
    for share in having:
        if share.state == ALLOCATION_STATE_WAITING:
            why = "it is at its limit" if share.throttled else "others have it"
            for_ = f"for {milliseconds(share.waiting_ns)} now, {milliseconds(share.longest_wait_ns)} at most: {why}"
            yield Waiting(who=owners[share.allocation.id], what=line(device_name(device)), why=for_)
