"""The list that the kubelet is sent: every unit of every device, and whether it can be had.

A unit is *Unhealthy* to the kubelet where its device is not healthy, and where it is free and hidden, because nothing
places pods by device (``units.hiding``). Only here do these two look the same.
"""

import asyncio
from collections.abc import Collection, Iterable
from time import monotonic_ns

from deviceplugin.allocations.store import Store
from deviceplugin.devices.device_list import Devices
from deviceplugin.live_config import Settings
from deviceplugin.pods.pod_watch import BoundPods
from deviceplugin.units.hiding import Hidden, placeable
from deviceplugin.units.ledger import Allocation, memory_left_mib
from edgeshare.contract.devices import Device
from edgeshare.contract.units import NS_PER_S, UNITS_PER_DEVICE, unit_id
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.waiting import Change, first_of


class UnitList:
    """The list of one resource, for all of its streams. Without an API server no scheduler reads it, and nothing is
    hidden."""

    def __init__(self, devices: Devices, store: Store, pods: BoundPods | None, settings: Settings) -> None:
        self._devices = devices
        self._store = store
        self._pods = pods
        self._settings = settings
        self._hidden = Hidden()
        self._change = Change()

    def now(self) -> api.ListAndWatchResponse:
        """As of now. Nothing that is handed out is hidden, be it since a moment ago."""
        held = {unit for allocation in self._store.ledger for unit in allocation.unit_ids}
        return list_units(self._devices.now, self._hidden.units - held)

    def next_changes(self) -> tuple[asyncio.Event, ...]:
        """One of these is set when it is no longer the list of now."""
        return self._devices.next_change(), self._change.next

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps what is hidden as it should be, until ``stop``."""
        while not stop.is_set():
            changes = [self._settings.next_change()]
            if self._pods is not None and self._hides:
                changes += [self._devices.next_change(), self._store.next_change(), self._pods.next_change()]
            before = self._hidden.units
            again_ns = self._hidden.look(*self._look(), monotonic_ns())
            if self._hidden.units != before:
                self._change.tell()
            await first_of(stop, *changes, timeout_s=None if again_ns is None else again_ns / NS_PER_S)

    @property
    def _hides(self) -> bool:
        return self._settings.now.advertise == "placeable"

    def _look(self) -> tuple[frozenset[str], frozenset[str]]:
        """The units that no pod has that is there, and those of them that had better be hidden. What a pod had that is
        over counts as free, as a scheduler counts it; it is not hidden as long as it is not taken back."""
        lost = self._store.lost_units
        if self._pods is None or not self._hides or lost is None:
            return frozenset(), frozenset()
        allocations = list(self._store.ledger)
        held = lost.union(*(each.unit_ids for each in allocations if not _is_over(each, self._pods)))
        free = {device.id: _units(device) - held for device in self._devices.now if device.healthy}
        devices = self._devices.by_id()
        memory_percent = {
            device_id: left_mib * UNITS_PER_DEVICE // devices[device_id].memory_mib
            for device_id, left_mib in memory_left_mib(devices, allocations).items()
            if devices[device_id].memory_mib
        }
        of_all = frozenset[str]().union(*free.values())
        told = placeable(free, memory_percent)
        return of_all, of_all.difference(told, *(each.unit_ids for each in allocations))


def list_units(devices: Iterable[Device], hidden: Collection[str] = ()) -> api.ListAndWatchResponse:
    """What the kubelet is sent: 100 units a device, each with its device's health, but for those that are hidden. A
    device that is on no known NUMA node has no topology: -1 would be taken for a node."""
    response = api.ListAndWatchResponse()
    for device in devices:
        nodes = [api.NUMANode(ID=device.numa_node)] if device.numa_node >= 0 else []
        topology = api.TopologyInfo(nodes=nodes) if nodes else None
        response.devices.extend(
            api.Device(
                ID=unit, health="Healthy" if device.healthy and unit not in hidden else "Unhealthy", topology=topology
            )
            for unit in sorted(_units(device))
        )
    return response


def _units(device: Device) -> frozenset[str]:
    return frozenset(unit_id(device.id, unit) for unit in range(UNITS_PER_DEVICE))


def _is_over(allocation: Allocation, pods: BoundPods) -> bool:
    whose = allocation.whose
    return whose is not None and bool(whose.pod_uid) and pods.saw_the_end(whose.namespace, whose.pod, whose.pod_uid)
