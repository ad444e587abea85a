"""What of a node is shared: the devices that the device plugin advertises, as units and memory in total."""

from collections.abc import Iterable

from edgeshare.contract.units import UNITS_PER_DEVICE
from edgeshare.inventory.boards import is_known
from labeller import names
from labeller.facts import Facts, GpuFacts


def labels_of(facts: Facts, jetson_reserve_mib: int) -> dict[str, str]:
    """Of GPUs and of EdgeTPUs; none of a kind of which there is no share.

    In place of a GPU in MIG mode its MIG devices are shared. Not counted are a GPU that has no memory of its own and is
    no Jetson's (a DGX Spark's), which the plugin does not share, and the devices that the plugin's configuration
    declares, which the labeller does not read. What that leaves out is counted, and a Jetson without a serial number.
    """
    shared = [memory_mib for memory_mib in _memories(facts, jetson_reserve_mib) if memory_mib > 0]
    labels = {}
    if shared and "jetson" not in facts.unread:
        labels = {
            names.GPU_SHARE: "true",
            names.GPU_SHARE_UNITS: str(UNITS_PER_DEVICE * len(shared)),
            names.GPU_SHARE_MEMORY_MIB: str(sum(shared)),
        }
    if facts.corals:
        labels[names.TPU_SHARE] = "true"
        labels[names.TPU_SHARE_UNITS] = str(UNITS_PER_DEVICE * len(facts.corals))
    return labels


def _memories(facts: Facts, jetson_reserve_mib: int) -> Iterable[int]:
    """Of each GPU and MIG device, as MiB; 0 where it has none of its own."""
    for gpu in facts.nvml.gpus if facts.nvml else ():
        yield from _parts(gpu)
    if facts.jetson is not None and is_known(facts.jetson.compatible):
        yield facts.jetson.memory_mib - jetson_reserve_mib


def _parts(gpu: GpuFacts) -> Iterable[int]:
    if not gpu.mig_enabled:
        return [gpu.memory_mib]
    return [profile.memory_mib for profile in gpu.mig for _ in range(profile.count)]
