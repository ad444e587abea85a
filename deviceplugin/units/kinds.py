"""The resources that the plugin serves: one for each kind of device, each counted by itself."""

from dataclasses import dataclass

from edgeshare.contract.devices import WORDS, Accelerator
from edgeshare.contract.names import GPU_PERCENT, HOOK_DIR_IN_CONTAINER, TPU_HOOK_DIR_IN_CONTAINER, TPU_PERCENT


@dataclass(frozen=True)
class Kind:
    """What differs from one to the other."""

    accelerator: Accelerator
    resource: str
    prefix: str
    """How the names of its allocations and sockets begin."""
    hook_dir: str
    """Where a container finds its allocation's folder."""

    @property
    def word(self) -> str:
        """What people call one such device."""
        return WORDS[self.accelerator]

    def owns(self, allocation_id: str) -> bool:
        """Whether an allocation is of this kind, as its name tells."""
        return allocation_id.startswith(f"{self.prefix}-")


GPU = Kind(Accelerator.GPU, GPU_PERCENT, "gpu", HOOK_DIR_IN_CONTAINER)
EDGETPU = Kind(Accelerator.EDGETPU, TPU_PERCENT, "tpu", TPU_HOOK_DIR_IN_CONTAINER)

RESOURCES = (GPU_PERCENT, TPU_PERCENT)
"""All that are ours."""
