"""The node's AcceleratorNode: its devices with their health and the allocations made, for whoever assigns devices to
pods."""

from collections.abc import Iterable
from typing import Any

from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.contract.devices import Device
from edgeshare.contract.health import Health
from edgeshare.contract.names import SHARE_API
from edgeshare.contract.units import memory_cap_mib

KIND = "AcceleratorNode"


def accelerator_node(
    node_name: str, node_uid: str, devices: Iterable[tuple[Device, Health]], allocations: Iterable[Allocation]
) -> dict[str, Any]:
    """The object as this node's plugin writes it; it goes with its Node."""
    devices = list(devices)
    there = {device.id: device for device, _ in devices}
    made = [_allocation(each, there) for each in sorted(allocations, key=lambda each: each.id)]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node_name, "uid": node_uid}
    return {
        "apiVersion": SHARE_API,
        "kind": KIND,
        "metadata": {"name": node_name, "ownerReferences": [owner]},
        "status": {
            "deviceCount": len(devices),
            "healthyCount": sum(health.healthy for _, health in devices),
            "allocationCount": len(made),
            "devices": [_device(device, health) for device, health in devices],
            "allocations": made,
        },
    }


def _device(device: Device, health: Health) -> dict[str, Any]:
    described = {
        "id": device.id,
        "kind": device.accelerator.value,
        "model": device.model,
        "memoryMiB": device.memory_mib,
        "healthy": health.healthy,
    }
    if health.healthy:
        return described
    why = {"reason": health.reason, "cause": health.message, "source": health.source, "since": health.since}
    return {**described, **why}


def _allocation(allocation: Allocation, devices: dict[str, Device]) -> dict[str, Any]:
    """``memoryMiB`` is the cap of each of its devices; whose it is, is left out until it is known."""
    chosen = by_device(allocation.unit_ids)
    units_each = max(len(units) for units in chosen.values())
    totals_mib = [devices[device_id].memory_mib for device_id in chosen if device_id in devices]
    described: dict[str, Any] = {
        "id": allocation.id,
        "devices": sorted(chosen),
        "unitsEach": units_each,
        "memoryMiB": memory_cap_mib(allocation.memory_mib, min(totals_mib, default=0), units_each),
    }
    owner = allocation.owner or allocation.applicant
    if owner is not None:
        described["pod"] = {"namespace": owner.namespace, "name": owner.pod}
        described["container"] = owner.container
        if owner.pod_uid:
            described["pod"]["uid"] = owner.pod_uid
    return described
