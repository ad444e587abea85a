"""How much memory of each device is not promised to anybody yet."""

from collections.abc import Collection, Mapping

from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.contract.devices import Device
from edgeshare.contract.units import memory_cap_mib


def memory_left_mib(devices: Mapping[str, Device], allocations: Collection[Allocation]) -> dict[str, int]:
    """Memory of each device, less the caps of these allocations; below 0 where more was promised than there is."""
    left = {device_id: device.memory_mib for device_id, device in devices.items()}
    for allocation in allocations:
        if _taken_over(allocation, allocations):
            continue
        for device_id, units in by_device(allocation.unit_ids).items():
            if device_id in left:
                left[device_id] -= memory_cap_mib(allocation.memory_mib, devices[device_id].memory_mib, len(units))
    return left


def _taken_over(allocation: Allocation, allocations: Collection[Allocation]) -> bool:
    """Whether it is an init container's whose units a later container of its pod has: only one of them runs."""
    if allocation.owner is not None and allocation.owner.listed:
        return False
    return any(other.id != allocation.id and other.unit_ids & allocation.unit_ids for other in allocations)
