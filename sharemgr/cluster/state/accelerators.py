"""AcceleratorNodes as the assigner knows them: what a node has, and which allocations its plugin lists. Nothing that
one says reaches further than its node."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from edgeshare.contract.accelerator_kind import GPU, KINDS, AcceleratorKind, kind_of
from edgeshare.contract.devices import is_device_id
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.labels import label_value
from edgeshare.kube.objects.accelerator_node import Allocation, Status, name_of, status_of
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory, Node
from sharemgr.cluster.state.request import Holding, Take

MODELS_KNOWN = 256

_label = lru_cache(MODELS_KNOWN)(label_value)


def parse_node(thing: object, known: Callable[[str], Node | None] = lambda name: None) -> AcceleratorNode:
    """An AcceleratorNode from its plain JSON; one that tells nonsense has no devices, and a fault. Raises
    InvalidRequest for what has no name.

    ``known``: what is known of the node of a name. A node tells all each time that one thing changes: what of it is as
    it is known is not parsed again."""
    name = name_of(thing)
    try:
        node = known(name)
        before = None if node is None else _as_before(node, thing)
        return _node(name, status_of(thing)) if before is None else before
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
    return AcceleratorNode(Inventory(name, devices), _listed(status, kinds))


def _as_before(node: Node, thing: Any) -> AcceleratorNode | None:
    """What it tells, where its devices are those that it has; None where they are others. Raises InvalidRequest for
    what cannot be among the allocations that are others than before."""
    inventory = Inventory(node.inventory.node, node.inventory.devices)
    try:
        status = thing["status"]
        told = [
            (each["id"], _label(each["model"]), each["memoryMiB"], each["healthy"], each["kind"])
            for each in status["devices"]
        ]
        allocations = status.get("allocations", [])
        if not told or tuple(told) != inventory.devices or not isinstance(allocations, list):
            return None
        kept, others = _kept(node.listed, allocations)
    except (AttributeError, KeyError, TypeError):
        return None
    kinds = {device.id: KINDS[device.kind] for device in inventory.devices}
    fresh = _listed(status_of({"status": {"allocations": others}}), kinds) if others else ()
    return AcceleratorNode(inventory, fresh, kept=kept)


def _kept(listed: Mapping[str, Holding], allocations: list[Any]) -> tuple[dict[str, Holding], list[Any]]:
    """What is told of pods as it was listed before, by their uids, and the allocations of which that is not so."""
    kept: dict[str, Holding] = {}
    others, uids = [], set()
    for each in allocations:
        uid = each["pod"]["uid"] if "pod" in each else ""
        before = listed.get(uid)
        if before is not None and uid not in uids and _is_of(before.takes, each):
            kept[uid] = before
        else:
            others.append(each)
            # Several containers of a pod: what they have together is put together anew.
            if kept.pop(uid, None) is not None:
                return {}, allocations
        uids.add(uid)
    return kept, others


def _is_of(takes: tuple[Take, ...], allocation: Mapping[str, Any]) -> bool:
    """Whether these are what the allocation, and no other, takes."""
    devices, units, memory_mib = allocation["devices"], allocation["unitsEach"], allocation["memoryMiB"]
    if len(devices) != len(takes):
        return False
    return all(
        take.device_id == device and take.units == units and take.memory_mib == memory_mib
        for take, device in zip(takes, devices, strict=True)
    )


def _listed(status: Status, kinds: Mapping[str, AcceleratorKind | None]) -> tuple[Listed, ...]:
    return tuple(Listed(each.id, each.pod.uid, takes) for each in status.allocations if (takes := _takes(each, kinds)))


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
