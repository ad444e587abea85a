"""How much memory of each device is not promised to anybody yet."""

from collections.abc import Collection, Mapping

from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.contract.devices import Device
from edgeshare.contract.units import default_memory_mib


def memory_left_mib(devices: Mapping[str, Device], allocations: Collection[Allocation]) -> dict[str, int]:
    """Memory of each device, less the caps of these allocations; below 0 where more was promised than there is."""
    left = {device_id: device.memory_mib for device_id, device in devices.items()}
    for allocation in allocations:
        if _taken_over(allocation, allocations):
            continue
        for device_id, units in by_device(allocation.unit_ids).items():
            if device_id in left:
                cap_mib = default_memory_mib(devices[device_id].memory_mib, len(units))
                left[device_id] -= allocation.memory_mib or cap_mib
    return left


def needed_mib(device: Device, request_percent: int, memory_mib: int) -> int:
    """The cap of a container on one device; ``memory_mib`` 0 is the request's fraction."""
    return memory_mib or default_memory_mib(device.memory_mib, request_percent)


def _taken_over(allocation: Allocation, allocations: Collection[Allocation]) -> bool:
    """Whether it is an init container's whose units a later container of its pod has: only one of them runs."""
    if allocation.owner is not None and allocation.owner.listed:
        return False
    return any(other.id != allocation.id and other.unit_ids & allocation.unit_ids for other in allocations)
