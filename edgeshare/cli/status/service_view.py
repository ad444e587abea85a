"""How a cluster's devices and shares are shown where it is known how they are used: the tables of a node, with its
name."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table

from edgeshare.cli.status.cluster_view import waiting_lines, waiting_part
from edgeshare.cli.status.node_view import DEVICE_COLUMNS, SHARE_COLUMNS, device_cells, share_cells
from edgeshare.contract.text import in_one_line
from edgeshare.shown.used import Used, nobody, of_api_server, staleness
from edgeshare.shown.waiting_pods import LINE_MAX

Row = tuple[str, ...]

OF_ALL = ("allocated", "memory allocated", "memory used", "unmanaged")
"""What is told of a device to who may see all who have it."""


def tables(used: Used) -> list[RenderableType]:
    """What is printed, one below the other."""
    devices, shares = device_rows(used), share_rows(used)
    shown: list[RenderableType] = [_table(device_columns(used), devices)]
    shown += ["", _table(("node", *SHARE_COLUMNS), shares)] if shares else ["", "no allocations"]
    said = list(notices(used))
    shown += ["", *said] if said else []
    return [*shown, "", waiting_part(used.waiting)]


def lines(used: Used) -> Iterator[str]:
    """A cluster for who reads line by line."""
    for columns, rows in ((device_columns(used), device_rows(used)), (("node", *SHARE_COLUMNS), share_rows(used))):
        for row in rows:
            yield "  ".join(f"{name}: {cell}" for name, cell in zip(columns, row, strict=True))
    yield from notices(used)
    yield from waiting_lines(used.waiting)


def device_columns(used: Used) -> Row:
    """The names of the columns of ``device_rows``."""
    return ("node", *(name for name in DEVICE_COLUMNS if not (used.namespace and name in OF_ALL)))


def device_rows(used: Used) -> list[Row]:
    """A row for each device."""
    shown = device_columns(used)
    return [
        (
            _line(node.node),
            *(_line(cell) for name, cell in zip(DEVICE_COLUMNS, device_cells(device), strict=True) if name in shown),
        )
        for node in used.state.nodes
        for device in node.status.devices
    ]


def share_rows(used: Used) -> list[Row]:
    """A row for each allocation."""
    return [
        (_line(node.node), *map(_line, share_cells(node.status, share)))
        for node in used.state.nodes
        for share in node.status.allocations
    ]


def notices(used: Used) -> Iterator[str]:
    """What is not of now, a line each."""
    if not used.state.nodes:
        yield nobody(used)
    for node in used.state.nodes:
        if node.error:
            yield f"node {_line(node.node)}: {staleness(node)}"
    yield from of_api_server(used)


def _table(columns: Row, rows: list[Row]) -> Table:
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _line(text: str) -> str:
    return in_one_line(text, LINE_MAX)
