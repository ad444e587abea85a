"""Which of our GPUs another device plugin on the node hands out too: whoever gets one from both has it all, and a share
of nothing."""

from collections.abc import Collection, Iterable, Mapping

from edgeshare.contract.devices import Accelerator, Device

NVIDIA = "nvidia.com/"
"""How the names of the resources of NVIDIA's own plugin begin. (NVIDIA/k8s-device-plugin, README.)"""

TEGRA = "tegra"
"""What that plugin calls the GPU of any Jetson; others it calls by their UUID, whatever its ``deviceIDStrategy``.
(NVIDIA/k8s-device-plugin, internal/rm/tegra_devices.go and devices.go.)"""


def contested(devices: Iterable[Device], ids: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Device id → why it must not be handed out, for each that another plugin advertises.

    ``ids``: resource → its units' ids, of resources that are not ours, as the kubelet lists them
    (PodResources, ``GetAllocatableResources``).
    """
    gpus = [device for device in devices if device.accelerator is Accelerator.GPU and device.source != "declared"]
    refused: dict[str, str] = {}
    for resource, units in sorted(ids.items()):
        # A plugin that shares a GPU by time appends the number of the replica.
        theirs = {unit.partition("::")[0] for unit in units}
        for device in gpus:
            if theirs & _names(device, resource):
                refused.setdefault(
                    device.id,
                    f"GPU {device.id} is not shared: {resource} on this node has it too; "
                    "leave it out of one of the two plugins' configurations",
                )
    return refused


def _names(device: Device, resource: str) -> set[str]:
    """What a unit of this device is called there: what hands out a whole GPU hands out its MIG devices."""
    names = {device.id, device.parent} - {""}
    if device.source == "jetson" and resource.startswith(NVIDIA):
        names.add(TEGRA)
    return names
