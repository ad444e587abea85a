"""Of whom something is asked, and what of a node's status is answered: all of it to who may see all, and to others what
is theirs. Pure."""

from dataclasses import dataclass

from edgeshare.v1.status_pb2 import AllocationStatus, DeviceStatus, NodeStatus

SHARED = ("id", "index", "model", "memory_mib", "healthy", "cause", "accelerator")
"""What of a device is told to everybody who has an allocation of it: what their own program sees, and why it does not
go on."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which pods are asked about: all where both are empty."""

    namespace: str = ""
    pod: str = ""

    def __str__(self) -> str:
        return f"pod {self.namespace}/{self.pod}" if self.pod else f"namespace {self.namespace}"


def view(status: NodeStatus, query: Query) -> NodeStatus:
    """What a query is answered with."""
    if not query.namespace:
        return status
    own = [each for each in status.allocations if _is_of(each, query)]
    ids = {each.allocation.id for each in own}
    devices = {device for each in own for device in each.allocation.device_ids}
    return NodeStatus(
        version=status.version,
        window_ns=status.window_ns,
        devices=[_of_others(device) for device in status.devices if device.id in devices],
        allocations=[_without_others(each, ids) for each in own],
    )


def _is_of(told: AllocationStatus, query: Query) -> bool:
    owner = told.allocation.owner
    return owner.namespace == query.namespace and query.pod in ("", owner.pod)


def _of_others(device: DeviceStatus) -> DeviceStatus:
    return DeviceStatus(**{name: getattr(device, name) for name in SHARED})


def _without_others(told: AllocationStatus, ids: set[str]) -> AllocationStatus:
    shown = AllocationStatus()
    shown.CopyFrom(told)
    shown.waiting_allocations[:] = [each for each in told.waiting_allocations if each in ids]
    return shown
