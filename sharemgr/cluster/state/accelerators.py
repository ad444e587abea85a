"""AcceleratorNodes as the assigner knows them: what a node has, and which allocations its plugin lists. Nothing that
one says reaches further than its node."""

from collections.abc import Mapping

from edgeshare.contract.accelerator_kind import GPU, KINDS, AcceleratorKind, kind_of
from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.labels import label_value
from edgeshare.kube.objects.accelerator_node import Allocation, Status, name_of, status_of
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Take


def parse_node(thing: object) -> AcceleratorNode:
    """An AcceleratorNode from its plain JSON; one that tells nonsense has no devices, and a fault. Raises
    InvalidRequest for what has no name."""
    name = name_of(thing)
    try:
        return _node(name, status_of(thing))
    except InvalidRequest as error:
        return AcceleratorNode(Inventory(name, ()), fault=f"AcceleratorNode {name}: {error}")


def _node(name: str, status: Status) -> AcceleratorNode:
    ids = [device.id for device in status.devices]
    for each in ids:
        if not is_device_id(each):
            raise InvalidRequest(f"names what cannot be a device: {each[:80]!r}")
    if len(set(ids)) != len(ids):
        raise InvalidRequest("names a device twice")
    kinds = {device.id: kind_of(device.kind) for device in status.devices}
    models = {model: label_value(model) for model in {device.model for device in status.devices}}
    devices = tuple(
        Device(each.id, models[each.model], each.memory_mib, each.healthy, kind.accelerator)
        for each in status.devices
        if (kind := kinds[each.id]) is not None
    )
    allocations = tuple(
        Listed(each.id, each.pod.uid, takes) for each in status.allocations if (takes := _takes(each, kinds))
    )
    return AcceleratorNode(Inventory(name, devices), allocations)


def _takes(allocation: Allocation, kinds: Mapping[str, AcceleratorKind | None]) -> tuple[Take, ...]:
    """What it has of devices of the kinds that are known here. One that its node has no more is of the kind that the
    allocation's name tells."""
    takes = []
    for each in allocation.devices:
        kind = kinds[each] if each in kinds else _named(allocation)
        if kind is not None:
            takes.append(Take(each, allocation.units_each, allocation.memory_mib, kind.accelerator))
    return tuple(takes)


def _named(allocation: Allocation) -> AcceleratorKind:
    return next((kind for kind in KINDS.values() if kind.owns(allocation.id)), GPU)
