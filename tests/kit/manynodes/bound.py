"""The pods that are bound, as the API server tells of them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_MEMORY_MIB, GPU_PERCENT
from edgeshare.contract.quantity import whole_number
from edgeshare.kube.following import follow
from edgeshare.kube.kube import Kube
from edgeshare.kube.threaded import InThreads

Json = dict[str, Any]


@dataclass(frozen=True)
class Bound:
    """A pod that has a node."""

    name: str
    uid: str
    node: str
    percent: int
    memory_mib: int
    """0: the same part as of the units."""
    assignment: str | None
    """What its Binding says; None of one that the scheduler bound by itself."""


class BoundPods:
    """Tells of each pod of the namespace `default` once when it is bound, and once when it is gone."""

    def __init__(self, kube: Kube) -> None:
        self.pods: dict[str, Bound] = {}
        """By uid."""
        self.first_s = self.last_s = 0.0
        """When, by the monotonic clock, the first and the last binding were seen since the last `forget`."""
        self._came: list[Callable[[Bound], None]] = []
        self._went: list[Callable[[Bound], None]] = []
        self._changed = asyncio.Event()
        self._lister = InThreads(kube)

    def start(self) -> None:
        """Begin to follow, in this event loop."""
        selector = "spec.nodeName!=,metadata.namespace=default"
        following = follow(self._lister, "/api/v1/pods", selector, _keep, self._listed, self._told)
        self._following = asyncio.create_task(following)

    def stop(self) -> None:
        """No more is told."""
        self._following.cancel()

    def tell(self, came: Callable[[Bound], None], went: Callable[[Bound], None]) -> None:
        """Whom to call."""
        self._came.append(came)
        self._went.append(went)

    def forget_times(self) -> None:
        """The next binding is the first."""
        self.first_s = self.last_s = 0.0

    async def until(self, are: Callable[[int], bool], timeout_s: float) -> bool:
        """Whether as many are bound as is asked for, before the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                while not are(len(self.pods)):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _listed(self, pods: list[Json]) -> None:
        there = {pod["uid"] for pod in pods}
        for uid in self.pods.keys() - there:
            self._forget(uid)
        for pod in pods:
            self._see(pod)

    def _told(self, kind: str, pod: Json) -> None:
        if kind == "DELETED":
            self._forget(pod["uid"])
        else:
            self._see(pod)

    def _see(self, pod: Json) -> None:
        if pod["uid"] in self.pods:
            return
        bound = Bound(**pod)
        self.pods[bound.uid] = bound
        self.last_s = time.monotonic()
        self.first_s = self.first_s or self.last_s
        self._changed.set()
        for call in self._came:
            call(bound)

    def _forget(self, uid: str) -> None:
        bound = self.pods.pop(uid, None)
        self._changed.set()
        if bound is not None:
            for call in self._went:
                call(bound)


def _keep(pod: Json) -> Json:
    metadata = pod["metadata"]
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    return {
        "name": metadata["name"],
        "uid": metadata["uid"],
        "node": pod["spec"]["nodeName"],
        "percent": whole_number(limits.get(GPU_PERCENT, "0"), GPU_PERCENT),
        "memory_mib": whole_number(limits.get(GPU_MEMORY_MIB, "0"), GPU_MEMORY_MIB),
        "assignment": (metadata.get("annotations") or {}).get(GPU_ASSIGNMENT),
    }
