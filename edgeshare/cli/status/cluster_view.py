"""How a cluster's devices are shown: a row each with who has it, and a row for each pod that waits."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from edgeshare.cli.status.cluster import Cluster, Device, Taken
from edgeshare.shown.used import NO_NODES
from edgeshare.shown.waiting_pods import UNSAID, Waiting

DEVICE_COLUMNS = ("node", "kind", "model", "allocated", "memory allocated", "health", "pods", "id")
NOBODY = "nobody is known yet"


def tables(cluster: Cluster) -> list[RenderableType]:
    """What is printed, one below the other."""
    shown: list[RenderableType] = [device_table(cluster)]
    if not cluster.nodes:
        shown.append(NO_NODES)
    return [*shown, "", waiting_part(cluster.waiting)]


def waiting_part(waiting: list[Waiting]) -> RenderableType:
    """The pods that wait for a node."""
    return waiting_table(waiting) if waiting else "no pod with a share waits for a node"


def device_table(cluster: Cluster) -> Table:
    """One row a device; a node that cannot be read has one, too."""
    table = Table(*DEVICE_COLUMNS, box=None, pad_edge=False)
    for node in cluster.nodes:
        if node.fault:
            table.add_row(node.name, "", "", "", "", f"cannot be read: {node.fault}")
        for device in node.devices:
            table.add_row(node.name, *_cells(device))
    return table


def waiting_table(waiting: list[Waiting]) -> Table:
    """One row a pod."""
    table = Table("waiting pod", "asks for", "scheduler", "why", box=None, pad_edge=False)
    for each in waiting:
        asks = ", ".join(f"{count} {name}" for name, count in each.asks.items())
        table.add_row(f"{each.namespace}/{each.pod}", asks, each.scheduler, each.why or UNSAID)
    return table


def lines(cluster: Cluster) -> Iterator[str]:
    """A cluster for who reads line by line."""
    if not cluster.nodes:
        yield NO_NODES
    for node in cluster.nodes:
        if node.fault:
            yield f"node: {node.name}  cannot be read: {node.fault}"
        for device in node.devices:
            cells = zip(DEVICE_COLUMNS, (node.name, *_cells(device)), strict=True)
            yield "  ".join(f"{name}: {cell}" for name, cell in cells)
    yield from waiting_lines(cluster.waiting)


def waiting_lines(waiting: list[Waiting]) -> Iterator[str]:
    """One a pod, for who reads line by line."""
    for each in waiting:
        yield f"waiting pod: {each.namespace}/{each.pod}  why: {each.why or UNSAID}"


def _cells(device: Device) -> tuple[str, ...]:
    return (
        device.kind,
        device.model,
        f"{device.percent} %",
        f"{device.taken_mib} of {device.memory_mib} MiB",
        "healthy" if device.healthy else device.why,
        ", ".join(map(_whose, device.taken)) or "none",
        device.id,
    )


def _whose(taken: Taken) -> str:
    owner = f"{taken.namespace}/{taken.pod}/{taken.container}" if taken.pod else NOBODY
    return f"{owner} {taken.percent} %"
