"""The words for what one device, and one allocation, is and does now. Pure."""

from edgeshare.contract.accelerator_kind import kind_of
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import (
    ALLOCATION_STATE_DRAINING,
    ALLOCATION_STATE_HOLDING,
    ALLOCATION_STATE_IDLE,
    ALLOCATION_STATE_WAITING,
    AllocationStatus,
    DeviceStatus,
)

STATES = {
    ALLOCATION_STATE_IDLE: "idle",
    ALLOCATION_STATE_WAITING: "waiting",
    ALLOCATION_STATE_HOLDING: "holding",
    ALLOCATION_STATE_DRAINING: "draining",
}


def unmanaged_text(device: DeviceStatus) -> str:
    """Who uses it past the hook."""
    if device.processes_unknown:
        return "not known"
    return ", ".join(f"pid {process.pid}" for process in device.unmanaged_processes) or "none"


def device_name(device: DeviceStatus) -> str:
    """What people call it: GPU 0, EdgeTPU 1."""
    kind = kind_of(device.accelerator)
    return f"{kind.word if kind is not None else device.accelerator} {device.index}"


def is_exclusive(device: DeviceStatus) -> bool:
    """Whether its driver lets in one process at a time."""
    kind = kind_of(device.accelerator)
    return kind is not None and kind.is_exclusive


def state_text(share: AllocationStatus, exclusive: bool) -> str:
    """What it does now; ``exclusive``: on a device that lets in one process at a time."""
    if share.overlapping:
        return "overlapping"
    if share.throttled:
        return "throttled"
    state = STATES.get(share.state, "unknown")
    if share.beside:
        return f"{state} beside"
    if exclusive and share.state == ALLOCATION_STATE_HOLDING:
        # It cannot be called back: how long it has kept the others waiting is what one wants to know.
        waiting = f", {len(share.waiting_allocations)} wait" if share.waiting_allocations else ""
        return f"{state} {share.holding_ns / NS_PER_S:.1f} s{waiting}"
    return state


def owner_text(allocation: Allocation) -> str:
    """Whose it is: namespace/pod/container, or the command."""
    owner = allocation.owner
    if owner.pod:
        return "/".join(filter(None, (owner.namespace, owner.pod, owner.container)))
    return owner.command or "unknown"


def milliseconds(time_ns: int) -> str:
    """A time, with its unit."""
    return f"{time_ns / NS_PER_MS:.1f} ms"
