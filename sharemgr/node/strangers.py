"""Processes on shared devices that no hook joined: found out about, and told once each."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from edgeshare.errors import Unavailable
from sharemgr.node.allocations import Allocation
from sharemgr.node.budget import Budget
from sharemgr.node.containers import Container, container_of
from sharemgr.node.peers import start_time

if TYPE_CHECKING:
    # Where no stranger ever comes its client is not loaded: it is a third of the manager's memory.
    from edgeshare.kube import Kube

logger = logging.getLogger(__name__)

COMPONENT = "edgeshare-sharemgr"
REASON = "UnmanagedGPUProcess"

EVENTS_PER_MINUTE = 6
"""Who starts processes again and again gets no more events than this, and thirty at once."""

EVENTS_BURST = 30


@dataclass(frozen=True)
class Stranger:
    """One process on one device."""

    pid: int
    device_id: str
    started: str | None
    """So that its pid tells it from a later process."""
    container: Container | None


class Strangers:
    """Those that are there now."""

    def __init__(self, node_name: str, cluster: "Callable[[], Kube] | None") -> None:
        """``cluster`` reaches the API server, in a thread of its own; None where there is none."""
        self._node_name = node_name
        self._cluster = cluster
        self._kube: Kube | None = None
        self._present: dict[tuple[str, int], Stranger] = {}
        self._events = Budget(EVENTS_PER_MINUTE, EVENTS_BURST, per_s=60)
        self._telling: set[asyncio.Task[None]] = set()

    def seen(self, unmanaged: Mapping[str, Iterable[int]], allocations: Iterable[Allocation]) -> None:
        """Takes in which pids each device has now that are nobody's clients; tells of those that are new."""
        present = {}
        fresh = []
        for device_id, pids in unmanaged.items():
            for pid in pids:
                started = start_time(pid)
                before = self._present.get((device_id, pid))
                if before is None or before.started != started:
                    before = Stranger(pid, device_id, started, _container(pid))
                    fresh.append(before)
                present[device_id, pid] = before
        self._present = present
        for stranger in fresh:
            self._tell(stranger, allocations)

    def container(self, device_id: str, pid: int) -> Container | None:
        """Where one of those that are there runs."""
        stranger = self._present.get((device_id, pid))
        return stranger.container if stranger is not None else None

    async def close(self) -> None:
        """Tells no more."""
        for task in self._telling:
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    def _tell(self, stranger: Stranger, allocations: Iterable[Allocation]) -> None:
        owner = _owner(stranger, allocations)
        where = "in no pod" if stranger.container is None else f"in pod {stranger.container.pod_uid}"
        if owner is not None:
            where = f"in pod {owner.namespace}/{owner.pod} (allocation {owner.allocation_id})"
        logger.warning(
            "process %d, %s, uses GPU %s past its share: no hook joined it", stranger.pid, where, stranger.device_id
        )
        if self._cluster is None or stranger.container is None:
            return
        if not self._events.spend(monotonic_ns()):
            return
        task = asyncio.create_task(asyncio.to_thread(self._write_event, stranger, owner))
        self._telling.add(task)
        task.add_done_callback(self._told)

    def _told(self, task: "asyncio.Task[None]") -> None:
        self._telling.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("no event of an unmanaged process: %s", error)

    def _write_event(self, stranger: Stranger, owner: "_Owner | None") -> None:
        """Runs in a thread. Raises Unavailable where the API server cannot be asked."""
        assert self._cluster is not None
        assert stranger.container is not None
        if self._kube is None:
            self._kube = self._cluster()
        about = _pod_named(owner) if owner is not None else None
        if about is None:
            about = _pod_listed(self._kube.pods_on(self._node_name), stranger.container.pod_uid)
        if about is None:
            raise Unavailable(f"the API server knows no pod {stranger.container.pod_uid} on {self._node_name}")
        message = (
            f"process {stranger.pid} of container {stranger.container.container_id[:12]} uses GPU "
            f"{stranger.device_id} past its share: no hook joined it (was its LD_PRELOAD taken away, "
            "or is it linked statically?)"
        )
        self._kube.event(COMPONENT, about, True, REASON, message)


@dataclass(frozen=True)
class _Owner:
    allocation_id: str
    namespace: str
    pod: str
    pod_uid: str


def _owner(stranger: Stranger, allocations: Iterable[Allocation]) -> _Owner | None:
    """The allocation of its pod, on its device before any other."""
    if stranger.container is None:
        return None
    uid = stranger.container.pod_uid
    of_pod = [each for each in allocations if each.owner.pod_uid == uid and each.owner.pod]
    of_pod.sort(key=lambda each: stranger.device_id not in each.device_ids)
    if not of_pod:
        return None
    return _Owner(of_pod[0].id, of_pod[0].owner.namespace, of_pod[0].owner.pod, uid)


def _pod_named(owner: _Owner) -> dict[str, str]:
    return _reference(owner.namespace, owner.pod, owner.pod_uid)


def _pod_listed(pods: Iterable[dict[str, Any]], uid: str) -> dict[str, str] | None:
    for pod in pods:
        metadata = pod["metadata"]
        # A static pod has another uid at the API server than at the kubelet, which it tells in an annotation.
        annotations = metadata.get("annotations") or {}
        if uid in (metadata["uid"], annotations.get("kubernetes.io/config.mirror")):
            return _reference(metadata["namespace"], metadata["name"], metadata["uid"])
    return None


def _reference(namespace: str, name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}


def _container(pid: int) -> Container | None:
    try:
        return container_of(Path(f"/proc/{pid}/cgroup").read_text())
    except OSError:
        # It is gone already, or in a pid namespace that is not ours.
        return None
