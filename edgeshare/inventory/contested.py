"""Which of our GPUs another device plugin on the node hands out too: whoever gets one from both has it all, and a share
of nothing."""

from collections.abc import Collection, Iterable, Mapping

from edgeshare.devices import Accelerator, Device

NVIDIA_GPU = "nvidia.com/gpu"
NVIDIA_MIG = "nvidia.com/mig-"
"""Resources of NVIDIA's own plugin; the second one's name ends with a profile. (NVIDIA/k8s-device-plugin, README.)"""


def contested(
    devices: Iterable[Device], ids: Mapping[str, Collection[str]], amounts: Mapping[str, int]
) -> dict[str, str]:
    """Device id → why it must not be handed out, for each that another plugin advertises.

    ``ids``: resource → its units' ids, of resources that are not ours, as the kubelet lists them
    (PodResources, ``GetAllocatableResources``). ``amounts``: resource → how many, as the node's status lists them: for
    resources of which the ids are not known. Then it cannot be told which GPUs they are, and none may be handed out.
    """
    gpus = [device for device in devices if device.accelerator is Accelerator.GPU and device.source == "nvml"]
    refused: dict[str, str] = {}
    for resource, units in sorted(ids.items()):
        # A plugin that shares a GPU by time appends the number of the replica.
        theirs = {unit.partition("::")[0] for unit in units}
        for device in gpus:
            if _names(device) & theirs or (_is_nvidias(resource) and _places(device, gpus) & theirs):
                refused.setdefault(device.id, _reason(device, f"{resource} on this node has it too"))
    for resource, amount in sorted(amounts.items()):
        if _is_nvidias(resource) and amount > 0 and resource not in ids:
            for device in gpus:
                why = f"{resource} on this node has {amount} devices, and this may be one of them"
                refused.setdefault(device.id, _reason(device, why))
    return refused


def _is_nvidias(resource: str) -> bool:
    return resource == NVIDIA_GPU or resource.startswith((f"{NVIDIA_GPU}.", NVIDIA_MIG))


def _names(device: Device) -> set[str]:
    """What hands out a whole GPU hands out its MIG devices."""
    return {device.id, device.parent} - {""}


def _places(device: Device, gpus: Iterable[Device]) -> set[str]:
    """NVIDIA's plugin can be set to number GPUs (``deviceIDStrategy: index``). With MIG devices about, its numbers are
    not ours."""
    return set() if any(each.parent for each in gpus) else {str(device.index)}


def _reason(device: Device, why: str) -> str:
    return f"GPU {device.id} is not shared: {why}; leave it out of one of the two plugins' configurations"
