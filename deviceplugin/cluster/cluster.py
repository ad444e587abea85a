"""What plugin and cluster part tell each other: pods' assignments one way, the node's AcceleratorNode the other."""

import asyncio
from collections.abc import Sequence

from deviceplugin.allocations.store import Store
from deviceplugin.cluster.assignments import Annotating
from deviceplugin.cluster.publishing import Publishing
from deviceplugin.devices.device_list import Devices
from deviceplugin.health.watch import HealthWatch
from deviceplugin.pods.pod_spec import slim
from deviceplugin.pods.pod_watch import BoundPods
from edgeshare.kube.following import PutOff, follow
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import InThreads


class Cluster:
    """What this node tells the cluster part, and follows of it."""

    def __init__(
        self,
        kube: Kube,
        node_name: str,
        pods: BoundPods,
        devices: Devices,
        health: HealthWatch,
        stores: Sequence[Store],
    ) -> None:
        """``stores``: those of all kinds of device."""
        self._pods = pods
        self._kube = kube
        self._node_name = node_name
        self._annotating = Annotating(kube, pods, stores)
        self._publishing = Publishing(kube, node_name, devices, health, stores)

    def devices_changed(self) -> None:
        """Devices, or their health, are no longer what they were."""
        self._publishing.look_again()

    async def run(self, stop: asyncio.Event) -> None:
        """Follows the pods, and writes what others read, until ``stop``."""
        pods, put_off, selector = self._pods, PutOff(), f"spec.nodeName={self._node_name}"
        pods.hurry_by(put_off.hurry)
        of_pods = follow(InThreads(self._kube), "/api/v1/pods", selector, slim, pods.listed, pods.told, put_off=put_off)
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(of_pods), tasks.create_task(self._publishing.follow())]
            try:
                async with asyncio.TaskGroup() as writing:
                    writing.create_task(self._annotating.run(stop))
                    writing.create_task(self._publishing.run(stop))
            finally:
                for each in following:
                    each.cancel()
