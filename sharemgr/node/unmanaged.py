"""The unmanaged processes of this node: those on a shared device whose use no hook tells of. Each is told of once."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

from edgeshare.contract.devices import Device
from edgeshare.contract.units import UNITS_PER_DEVICE
from edgeshare.log_limit import LogLimit
from sharemgr.node.clients.server import AllocationServer
from sharemgr.node.events import Events, Reason
from sharemgr.node.machine.allocations import Allocation, Owner
from sharemgr.node.machine.containers import Container, container_of
from sharemgr.node.machine.observer import Observation
from sharemgr.node.sockets.peers import start_time

logger = logging.getLogger(__name__)

LINES_BURST = 30
"""In the log: of more processes at once, and then of more than six a minute, only how many there were is said."""


@dataclass(frozen=True)
class Process:
    """An unmanaged process on one device."""

    pid: int
    device_id: str
    started: str | None
    """When, as the kernel has it: a later process may have its pid. None: not known."""
    container: Container | None


class UnmanagedProcesses:
    """The unmanaged processes that are there now."""

    def __init__(self, events: Events, now_ns: Callable[[], int] = monotonic_ns) -> None:
        self._events = events
        self._now_ns = now_ns
        self._lines = LogLimit(LINES_BURST)
        self._present: dict[tuple[str, int], Process] = {}
        self._pids: dict[str, set[int]] = {}
        self._pids_before: dict[str, set[int]] = {}

    def look(
        self, observation: Observation, servers: Iterable[AllocationServer], allocations: Collection[Allocation]
    ) -> None:
        """Takes in what the driver says of processes, and tells of those that are new and nobody's clients."""
        known = _known_pids(observation, servers)
        pids = {
            device.id: _unmanaged_pids(device, allocations, observation, known.get(device.id, set()))
            for device in observation.devices
        }
        # A process joins a moment before or after the driver lists it: one look is not enough to say that
        # it did not.
        self._pids = {device_id: each & self._pids_before.get(device_id, set()) for device_id, each in pids.items()}
        self._pids_before = pids
        self.seen(self._pids, allocations)

    def of(self, device_id: str) -> Iterable[int]:
        """The pids of those on a device."""
        return self._pids.get(device_id, ())

    def seen(self, unmanaged: Mapping[str, Iterable[int]], allocations: Iterable[Allocation]) -> None:
        """Takes in which pids each device has now that are nobody's clients; tells of those that are new."""
        present = {}
        fresh = []
        for device_id, pids in unmanaged.items():
            for pid in pids:
                before = self._present.get((device_id, pid))
                try:
                    started = start_time(pid)
                except OSError:
                    # Nobody can look just now, for want of a descriptor: who is new is told of when one can.
                    if before is not None:
                        present[device_id, pid] = before
                    continue
                if before is None or before.started != started:
                    before = Process(pid, device_id, started, _container(pid))
                    fresh.append(before)
                present[device_id, pid] = before
        self._present = present
        for process in fresh:
            self._tell(process, allocations)

    def container(self, device_id: str, pid: int) -> Container | None:
        """Where one of those that are there runs."""
        process = self._present.get((device_id, pid))
        return process.container if process is not None else None

    def _tell(self, process: Process, allocations: Iterable[Allocation]) -> None:
        container = process.container
        share = _share(process, allocations)
        where = "in no pod" if container is None else f"in pod {container.pod_uid}"
        if share is not None:
            where = f"in pod {share.owner.namespace}/{share.owner.pod} (allocation {share.id})"
        # A program may start as many as it likes, one after the other. Status names all that are there.
        more = self._lines.ending(self._now_ns())
        if more is not None:
            said = "process %d, %s, uses GPU %s past its share: no hook tells of it%s"
            logger.warning(said, process.pid, where, process.device_id, more)
        if container is not None:
            self._events.warn(
                Owner(pod_uid=container.pod_uid) if share is None else share.owner,
                Reason.UNMANAGED_PROCESS,
                f"process {process.pid} of container {container.container_id[:12]} uses GPU {process.device_id} past "
                "its share: no hook tells of it (was its LD_PRELOAD taken away, is it linked statically, or is the GPU "
                "another container's?)",
            )


def _share(process: Process, allocations: Iterable[Allocation]) -> Allocation | None:
    """The allocation of its pod, on its device before any other."""
    if process.container is None:
        return None
    uid = process.container.pod_uid
    of_pod = [each for each in allocations if each.owner.pod_uid == uid and each.owner.pod]
    return min(of_pod, key=lambda each: process.device_id not in each.device_ids, default=None)


def _container(pid: int) -> Container | None:
    try:
        return container_of(Path(f"/proc/{pid}/cgroup").read_bytes())
    except OSError:
        # It is gone already, or in a pid namespace that is not ours.
        return None


def _known_pids(observation: Observation, servers: Iterable[AllocationServer]) -> dict[str, set[int]]:
    """By device id: the processes of those that have it, and that tell of their use of it."""
    known: dict[str, set[int]] = {}
    for server in servers:
        pids = set(server.pids())
        for device_id in server.terms.device_ids:
            silent = server.silent_pids(observation.active.get(device_id, ()))
            known.setdefault(device_id, set()).update(pids - silent)
    return known


def _unmanaged_pids(
    device: Device, allocations: Iterable[Allocation], observation: Observation, known: set[int]
) -> set[int]:
    """The pids on a device whose use no hook tells of. On a device that one allocation has whole, none is
    expected to."""
    on_device = [allocation for allocation in allocations if device.id in allocation.device_ids]
    if any(allocation.request_percent == UNITS_PER_DEVICE for allocation in on_device):
        return set()
    return set(observation.processes.get(device.id, {})) - known
