"""Kubernetes events about pods of this node: what a pod's owner should know, where `kubectl describe pod` shows it."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from enum import StrEnum
from time import monotonic_ns
from typing import Any

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import Kube
from edgeshare.log_limit import LogLimit
from sharemgr.node.machine.allocations import Owner

logger = logging.getLogger(__name__)

COMPONENT = "edgeshare-sharemgr"

EVENTS_BURST = 30
"""Of each reason: a pod that does the same again and again gets no more events than these at once, and then six a
minute."""


class Reason(StrEnum):
    """Why there is an event, as its `reason` says."""

    UNMANAGED_PROCESS = "UnmanagedGPUProcess"
    """A process uses a shared GPU past every hook."""
    CONTEXT_REFUSED = "GPUContextRefused"
    """A CUDA context did not fit under a container's cap on memory."""


class Events:
    """Writes events. Nothing here waits: a thread does, for the API server."""

    def __init__(
        self, node_name: str, cluster: Callable[[], Kube] | None, now_ns: Callable[[], int] = monotonic_ns
    ) -> None:
        """``cluster`` reaches the API server, in a thread of its own; None where there is none, and then nothing is
        written."""
        self._now_ns = now_ns
        self._node_name = node_name
        self._cluster = cluster
        self._kube: Kube | None = None
        self._limits = {reason: LogLimit(EVENTS_BURST) for reason in Reason}
        self._unwritten = {reason: LogLimit() for reason in Reason}
        self._writing: set[asyncio.Task[None]] = set()

    def warn(self, owner: Owner, reason: Reason, message: str) -> None:
        """A warning about the owner's pod, unless there were too many of that reason; those that cannot be written are
        said in the log, of each reason now and then. Of a pod at least the uid is known, as the kubelet has it; who is
        no pod gets none. ``message`` says what is wrong, where, and what to do."""
        if self._cluster is None or not owner.pod_uid or self._limits[reason].ending(self._now_ns()) is None:
            return
        task = asyncio.create_task(asyncio.to_thread(self._write, self._cluster, owner, reason, message), name=reason)
        self._writing.add(task)
        task.add_done_callback(self._written)

    async def close(self) -> None:
        """Writes no more."""
        for task in self._writing:
            task.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            reason = Reason(task.get_name())
            if (more := self._unwritten[reason].ending(self._now_ns())) is not None:
                logger.warning("no event %s: %s%s", reason, error, more)

    def _write(self, cluster: Callable[[], Kube], owner: Owner, reason: Reason, message: str) -> None:
        """Runs in a thread. Raises Unavailable where the API server cannot be asked."""
        if self._kube is None:
            self._kube = cluster()
        about = _reference(owner.namespace, owner.pod, owner.pod_uid) if owner.pod else None
        if about is None:
            about = _listed(self._kube.pods_on(self._node_name), owner.pod_uid)
        if about is None:
            raise Unavailable(f"the API server knows no pod {owner.pod_uid} on {self._node_name}")
        self._kube.event(COMPONENT, about, True, reason, message)


def _listed(pods: Iterable[dict[str, Any]], uid: str) -> dict[str, str] | None:
    for pod in pods:
        metadata = pod["metadata"]
        # A static pod has another uid at the API server than at the kubelet, which it tells in an annotation.
        annotations = metadata.get("annotations") or {}
        if uid in (metadata["uid"], annotations.get("kubernetes.io/config.mirror")):
            return _reference(metadata["namespace"], metadata["name"], metadata["uid"])
    return None


def _reference(namespace: str, name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}
