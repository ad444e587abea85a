"""How `status` and `top` show a node's devices and shares: the tables, and their columns."""

from rich.table import Table

from edgeshare.contract.accelerator_kind import kind_of
from edgeshare.contract.share_class import class_of
from edgeshare.contract.units import MIB
from edgeshare.shown.words import is_exclusive, milliseconds, owner_text, state_text, unmanaged_text
from edgeshare.v1.status_pb2 import AllocationStatus, DeviceStatus, NodeStatus

SHARE_COLUMNS = (
    "owner",
    "gpu",
    "request",
    "limit",
    "class",
    "state",
    "held",
    "gpu time",
    "wanted",
    "met",
    "lent",
    "queued",
    "waiting",
    "longest wait",
    "memory",
    "clients",
    "allocation",
)
"""What is shown of an allocation, in this order."""


DEVICE_COLUMNS = ("gpu", "model", "id", "allocated", "memory allocated", "memory used", "health", "unmanaged")
"""What is shown of a device, in this order."""


def device_table(status: NodeStatus) -> Table:
    """One row a device."""
    table = Table(*DEVICE_COLUMNS, box=None, pad_edge=False)
    for device in status.devices:
        table.add_row(*device_cells(device))
    return table


def device_cells(device: DeviceStatus) -> tuple[str, ...]:
    """The cells of one device, as DEVICE_COLUMNS names them."""
    return (
        _index(device),
        device.model,
        device.id,
        f"{device.allocated_percent} %",
        f"{device.allocated_memory_mib} of {device.memory_mib} MiB",
        f"{device.memory_used_mib} MiB",
        "healthy" if device.healthy else device.cause,
        unmanaged_text(device),
    )


def share_table(status: NodeStatus) -> Table:
    """One row an allocation; shares are of the status's window."""
    table = Table(box=None, pad_edge=False)
    for name in SHARE_COLUMNS:
        # Where a terminal is too narrow, its id is what an allocation can do without first.
        table.add_column(name, no_wrap=True, min_width=0 if name == "allocation" else len(name))
    for share in status.allocations:
        table.add_row(*share_cells(status, share))
    return table


def share_cells(status: NodeStatus, share: AllocationStatus) -> tuple[str, ...]:
    """The cells of one allocation, as SHARE_COLUMNS names them."""
    allocation = share.allocation
    indices = {device.id: _index(device) for device in status.devices}
    exclusive = any(is_exclusive(device) for device in status.devices if device.id in allocation.device_ids)
    return (
        owner_text(allocation),
        ",".join(indices.get(device_id, device_id) for device_id in allocation.device_ids),
        f"{allocation.request_percent} %",
        f"{allocation.limit_percent} %",
        class_of(allocation.share_class),
        state_text(share, exclusive),
        f"{share.held_percent:.1f} %",
        f"{share.gpu_percent:.1f} %",
        f"{share.wanted_percent:.1f} %",
        f"{100 * share.guarantee_met_ratio:.0f} %",
        f"{share.lent_percent:.1f} %",
        milliseconds(share.queued_ns),
        milliseconds(share.waiting_ns),
        milliseconds(share.longest_wait_ns),
        f"{_at_least(status, share)}{share.memory_used_bytes // MIB} of {allocation.memory_mib} MiB",
        str(sum(not client.dying for client in share.clients)),
        allocation.id,
    )


def _at_least(status: NodeStatus, share: AllocationStatus) -> str:
    """Where the driver does not say what each process has, contexts are not in what is told."""
    silent = {device.id for device in status.devices if device.process_memory_unknown}
    return "" if silent.isdisjoint(share.allocation.device_ids) or not share.clients else "at least "


def _index(device: DeviceStatus) -> str:
    kind = kind_of(device.accelerator)
    return str(device.index) if kind is None or kind.is_default else f"{kind.prefix} {device.index}"
