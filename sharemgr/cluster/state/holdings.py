"""What a pod has by its assignment, and the assignment that gives it what was chosen for it."""

from edgeshare.contract.units import peak
from sharemgr.cluster.state.nodes import Inventory
from sharemgr.cluster.state.pods import SharePod
from sharemgr.cluster.state.request import Holding, Take


def hold(pod: SharePod, inventory: Inventory) -> Holding:
    """What a pod has by its assignment: of each device the most that those of an ask have at a time, who hand their
    units on. Raises InvalidRequest where the assignment says what cannot be."""
    totals_mib = {device.id: device.memory_mib for device in inventory.devices}
    takes: dict[str, Take] = {}
    for group in pod.assigned():
        kind = group[0][0].kind
        for device_id in {device_id: None for _, ids in group for device_id in ids}:
            here = [(each.ask, each.runs_along) for each, ids in group if device_id in ids]
            total_mib = totals_mib.get(device_id, 0)
            if len(here) == 1:  # of nearly all
                units, memory_mib = here[0][0].units, here[0][0].needed_mib(total_mib)
            else:
                units = peak((ask.units, along) for ask, along in here)
                memory_mib = peak((ask.needed_mib(total_mib), along) for ask, along in here)
            so_far = takes.get(device_id, Take(device_id, 0, 0, kind))
            takes[device_id] = so_far.and_as_much(units, memory_mib)
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
