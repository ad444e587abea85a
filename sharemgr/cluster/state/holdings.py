"""What a pod has by its assignment, and the assignment that gives it what was chosen for it."""

from collections.abc import Mapping

from edgeshare.contract.units import peak
from sharemgr.cluster.state.nodes import Device
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.request import Holding, Take

HELD_MAX = 1_000
"""Pods: each is looked at when it is decided, when the watch tells of its Binding, and when its node lists it, within
some seconds."""


class Held:
    """What pods have by their assignments: worked out once for a pod and its node's devices as they are."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[SharePod, Mapping[str, Device], Holding]] = {}
        """By uid; the oldest first."""

    def of(self, pod: SharePod, devices: Mapping[str, Device], chosen: Holding | None = None) -> Holding:
        """See hold. What was ``chosen`` for a pod of one container, and one device, is all that it has."""
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod and known[1] is devices:
            return known[2]
        is_chosen = chosen is not None and len(chosen.takes) == len(pod.containers) == len(pod.containers[0]) == 1
        found = chosen if chosen is not None and is_chosen else hold(pod, devices)
        self._known.pop(pod.uid, None)
        if len(self._known) == HELD_MAX:
            del self._known[next(iter(self._known))]
        self._known[pod.uid] = pod, devices, found
        return found


def hold(pod: SharePod, devices: Mapping[str, Device]) -> Holding:
    """What a pod has by its assignment, of its node's devices by their ids: of each the most that those of an ask have
    at a time, who hand their units on. Raises InvalidRequest where the assignment says what cannot be."""
    takes: dict[str, Take] = {}
    for group in pod.assigned():
        kind = group[0][0].kind
        for device_id in {device_id: None for _, ids in group for device_id in ids}:
            here = [(each.ask, each.runs_along) for each, ids in group if device_id in ids]
            device = devices.get(device_id)
            total_mib = 0 if device is None else device.memory_mib
            if len(here) == 1:  # of nearly all
                units, memory_mib = here[0][0].units, here[0][0].needed_mib(total_mib)
            else:
                units = peak((ask.units, along) for ask, along in here)
                memory_mib = peak((ask.needed_mib(total_mib), along) for ask, along in here)
            so_far = takes.get(device_id)
            takes[device_id] = (
                Take(device_id, units, memory_mib, kind) if so_far is None else so_far.and_as_much(units, memory_mib)
            )
    request = pod.request
    return Holding(
        pod.uid,
        pod.node,
        tuple(takes[device_id] for device_id in sorted(takes)),
        request.cpu_milli,
        request.ram_mib,
        request.affinity,
        request.exclusion,
        request.program,
    )


def assigned_to(pod: SharePod, chosen: Holding) -> str:
    """The annotation that gives a pod what was chosen for it: the takes are those of its asks, one after the other."""
    takes = iter(chosen.takes)
    return pod.assign([[next(takes).device_id for _ in range(ask.devices)] for ask in pod.request.asks])
