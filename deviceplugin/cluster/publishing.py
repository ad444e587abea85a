"""Keeps the node's AcceleratorNode as it should be: written on change, and again when somebody else changed or deleted
it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from deviceplugin.allocations.store import Store
from deviceplugin.cluster.accelerator_node import accelerator_node
from deviceplugin.cluster.node import COMPONENT
from deviceplugin.devices.device_list import Devices
from deviceplugin.health.watch import HealthWatch
from deviceplugin.retry_loop import keep
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import ACCELERATOR_NODES
from edgeshare.kube.following import PutOff, follow
from edgeshare.kube.kube import Kube
from edgeshare.kube.messages import no_node
from edgeshare.kube.threaded import InThreads, ask


class Publishing:
    """The AcceleratorNode of one node."""

    def __init__(
        self, kube: Kube, node_name: str, devices: Devices, health: HealthWatch, stores: Sequence[Store]
    ) -> None:
        self._kube = kube
        self._node_name = node_name
        self._devices = devices
        self._health = health
        self._stores = stores
        self._there: dict[str, Any] | None = None
        """The object as it was last seen."""
        self._changed = asyncio.Event()
        self._node_uid = ""

    async def follow(self) -> None:
        """Watches the object, until cancelled."""
        lister, selector = InThreads(self._kube), f"metadata.name={self._node_name}"
        await follow(lister, ACCELERATOR_NODES, selector, lambda it: it, self._listed, self._told, put_off=PutOff())

    def look_again(self) -> None:
        """What it tells of the devices may be out of date."""
        self._changed.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Writes it when it should be another one, until ``stop``."""
        await keep(self._look, self._next_changes, "the node's AcceleratorNode is not written", stop)

    def _next_changes(self) -> tuple[asyncio.Event, ...]:
        self._changed.clear()
        return self._changed, *(store.next_change() for store in self._stores)

    async def _look(self) -> None:
        if self._there is None or not self._node_uid:
            # It goes with its Node; one that was made anew has another uid.
            node = await ask(self._kube.node, self._node_name)
            if node is None:
                raise Unavailable(no_node(self._node_name))
            self._node_uid = str(node["metadata"].get("uid", ""))
        shared = self._devices.by_id()
        # Those that are not shared have a health too.
        devices = [(device, health) for device, health in self._health.now if device.id in shared]
        allocations = [allocation for store in self._stores for allocation in store.shown()]
        wanted = accelerator_node(self._node_name, self._node_uid, devices, allocations)
        if not _is(self._there, wanted):
            path = f"{ACCELERATOR_NODES}/{self._node_name}"
            before = self._there
            applied = await ask(self._kube.apply, path, COMPONENT, wanted)
            # What was told meanwhile may be younger; of what was applied it is told, too.
            if self._there is before:
                self._there = applied

    def _listed(self, objects: list[dict[str, Any]]) -> None:
        self._there = objects[0] if objects else None
        self._changed.set()

    def _told(self, kind: str, thing: dict[str, Any]) -> None:
        self._there = None if kind == "DELETED" else thing
        self._changed.set()


def _is(there: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    if there is None or there.get("status") != wanted["status"]:
        return False
    owners = (there.get("metadata") or {}).get("ownerReferences") or []
    return any(owner.get("uid") == wanted["metadata"]["ownerReferences"][0]["uid"] for owner in owners)
