"""What differs from one kind of accelerator to another: one record a kind."""

from dataclasses import dataclass

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import (
    GPU_PERCENT,
    HOOK_DIR_IN_CONTAINER,
    HOOK_DIR_VARIABLE,
    TPU_HOOK_DIR_IN_CONTAINER,
    TPU_HOOK_DIR_VARIABLE,
    TPU_PERCENT,
)


@dataclass(frozen=True)
class AcceleratorKind:
    """A kind of device that is shared."""

    accelerator: Accelerator
    word: str
    """What people call one such device."""
    prefix: str
    """How the names of its allocations, sockets and CDI devices begin, and its option of ``edgeshare run``."""
    resource: str
    """What the kubelet counts."""
    hook_dir: str
    """Where a container finds its allocation's folder."""
    hook_dir_variable: str
    """Names that folder for a program outside of containers."""
    visible_variable: str
    """Tells the driver's library which devices there are; empty where a program opens their nodes."""
    wire_number: int
    """By which the hook says what it is for (``es_accelerator`` in wire.h)."""
    is_exclusive: bool
    """The driver lets one process in at a time: who has one of its nodes open has the slice."""
    has_memory: bool
    """Memory is shared out, too."""
    is_chosen_by_wish: bool
    """Pods name the models that will do, and by labels with whom they share one (``edge/gpu-model``,
    ``edge/gpu-affinity``, ``edge/gpu-exclusion``)."""

    @property
    def is_default(self) -> bool:
        """Whether it is meant where no kind is named: in folders, metrics and columns older than the second kind."""
        return self.accelerator is Accelerator.GPU

    def owns(self, allocation_id: str) -> bool:
        """Whether an allocation is of this kind, as its name tells."""
        return allocation_id.startswith(f"{self.prefix}-")


GPU = AcceleratorKind(
    accelerator=Accelerator.GPU,
    word="GPU",
    prefix="gpu",
    resource=GPU_PERCENT,
    hook_dir=HOOK_DIR_IN_CONTAINER,
    hook_dir_variable=HOOK_DIR_VARIABLE,
    visible_variable="CUDA_VISIBLE_DEVICES",
    wire_number=1,
    is_exclusive=False,
    has_memory=True,
    is_chosen_by_wish=True,
)
EDGETPU = AcceleratorKind(
    accelerator=Accelerator.EDGETPU,
    word="EdgeTPU",
    prefix="tpu",
    resource=TPU_PERCENT,
    hook_dir=TPU_HOOK_DIR_IN_CONTAINER,
    hook_dir_variable=TPU_HOOK_DIR_VARIABLE,
    visible_variable="",
    wire_number=2,
    is_exclusive=True,
    has_memory=False,
    is_chosen_by_wish=False,
)

KINDS = {kind.accelerator: kind for kind in (GPU, EDGETPU)}
"""All that there are."""

_BY_NAME = {kind.accelerator.value: kind for kind in KINDS.values()}

RESOURCES = tuple(kind.resource for kind in KINDS.values())
"""What the kubelet counts of them."""


def kind_of(accelerator: str) -> AcceleratorKind | None:
    """The kind that another part names; None for one that is newer than this part."""
    return _BY_NAME.get(accelerator)
