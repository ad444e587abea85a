"""Who has which units: as the kubelet says, and as the plugin and the share manager do."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from deviceplugin.allocations.records import Records
from deviceplugin.units.ledger import Allocation
from deviceplugin.units.preference import by_device
from edgeshare.client import ManagerClient
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import GPU_PERCENT
from edgeshare.kubelet.podresources import PodResources
from edgeshare.v1.status_pb2 import AllocationStatus
from tests.kit.onenode.installed.release import HOST_FOLDERS
from tests.kit.onenode.layout import KUBELET_ROOT, PLUGIN_SOCKET

RUNTIME_DIR, STATE_DIR = HOST_FOLDERS
SOCKET = KUBELET_ROOT / "pod-resources/kubelet.sock"
CHECKPOINT = PLUGIN_SOCKET.parent / "kubelet_internal_checkpoint"
TRIES = 5

T = TypeVar("T")
Held = dict[tuple[str, str], frozenset[str]]
"""(pod, container) → ids of its units."""


def asked(call: Callable[[PodResources], Coroutine[Any, Any, T]]) -> T:
    """What the kubelet's PodResources answers. Raises Unavailable."""
    for _ in range(TRIES - 1):
        # It is given two seconds, which a machine that does something else may take from it.
        with suppress(Unavailable):
            return asyncio.run(call(PodResources(SOCKET, GPU_PERCENT)))
    return asyncio.run(call(PodResources(SOCKET, GPU_PERCENT)))


def listed() -> Held:
    """By the kubelet's PodResources List: all but plain init containers."""
    found = asked(PodResources.list)
    return {(pod, name): units for (_, pod), of in found.items() for name, units in of.items() if units}


def got(pod: str) -> Held:
    """By its Get, of one pod."""
    found = asked(lambda kubelet: kubelet.get("default", pod)) or {}
    return {(pod, name): units for name, units in found.items() if units}


def allocatable() -> int:
    """How many units the kubelet can give out, whoever has them; none where it does not answer."""
    try:
        found = asyncio.run(PodResources(SOCKET, "").others())
    except Unavailable:
        return 0
    return len(found.get(GPU_PERCENT, ()))


def admitted(pod_uid: str) -> dict[str, frozenset[str]]:
    """By what the kubelet keeps on disk: the units of each container of a pod, plain init containers too."""
    entries = json.loads(CHECKPOINT.read_text())["Data"]["PodDeviceEntries"]
    return {
        entry["ContainerName"]: frozenset(unit for of_node in entry["DeviceIDs"].values() for unit in of_node)
        for entry in entries
        if entry["PodUID"] == pod_uid and entry["ResourceName"] == GPU_PERCENT
    }


def recorded() -> Held:
    """By what the plugin keeps on disk, of containers that the kubelet lists."""
    kept = _kept()
    return {(each.owner.pod, each.owner.container): each.unit_ids for each in kept if each.owner and each.owner.listed}


def _kept() -> list[Allocation]:
    while True:
        # The plugin may remove one between our finding it and our looking at it.
        with suppress(FileNotFoundError):
            return list(Records(Path(STATE_DIR) / "deviceplugin").read())


def shares(*pods: str) -> list[AllocationStatus]:
    """The share manager's allocations of these pods, by container; of all pods, if none is named. None where no manager
    answers."""
    with ManagerClient(RUNTIME_DIR) as manager:
        try:
            found = manager.status().allocations
        except Unavailable:
            return []
    chosen = [each for each in found if not pods or each.allocation.owner.pod in pods]
    return sorted(chosen, key=lambda each: each.allocation.owner.container)


def clients() -> dict[str, int]:
    """Pod → how many programs of it the manager has as clients; nothing where no manager answers."""
    return {each.allocation.owner.pod: len(each.clients) for each in shares()}


def percents(pod: str) -> dict[str, int]:
    """Container → the percent of a device that the share manager has for it."""
    return {each.allocation.owner.container: each.allocation.request_percent for each in shares(pod)}


def assert_all_agree(*pods: str) -> None:
    """List and Get of the kubelet, plugin and manager say the same of these pods, and no unit is given twice."""
    everybodys = listed()
    held = {container: units for container, units in everybodys.items() if container[0] in pods}
    assert {pod for pod, _ in held} == set(pods)
    assert held == {container: units for pod in pods for container, units in got(pod).items()}
    assert held == {container: units for container, units in recorded().items() if container[0] in pods}
    told = {
        (each.allocation.owner.pod, each.allocation.owner.container): dict.fromkeys(
            each.allocation.device_ids, each.allocation.request_percent
        )
        for each in shares(*pods)
    }
    assert told == {
        container: {device: len(of_device) for device, of_device in by_device(units).items()}
        for container, units in held.items()
    }
    assert sum(map(len, everybodys.values())) == len(frozenset().union(*everybodys.values()))
