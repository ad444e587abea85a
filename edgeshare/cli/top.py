"""``edgeshare top``: the shares, live."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.live import Live

from edgeshare.cli.status.node_view import SHARE_COLUMNS, device_table, share_cells, share_table
from edgeshare.cli.status.options import of_what
from edgeshare.cli.status.told import Form, form_of, of_node, write_look
from edgeshare.client import ManagerClient
from edgeshare.contract.units import NS_PER_S
from edgeshare.v1.status_pb2 import NodeStatus

if TYPE_CHECKING:
    from edgeshare.cli.status.service import Service

LISTEN = "127.0.0.1:9470"


@click.command("top")
@of_what
@click.option("--web", is_flag=True, help="As a page in a browser of this machine.")
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help=f"With --web: the loopback address to serve the page at; port 0: any. [default: {LISTEN}]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="For programs: a line of JSON for each look, with what `status --json` tells, when that was seen and, where "
    "it is not of now, why.",
)
@click.option("--yaml", "as_yaml", is_flag=True, help="The same as a stream of YAML documents.")
def command(
    runtime_dir: Path,
    cluster: bool,
    kubeconfig: Path,
    service: "Service | None",
    web: bool,
    listen: str | None,
    as_json: bool,
    as_yaml: bool,
) -> None:
    """Shows the shares live, until it is interrupted: of this node each second, with --cluster of all nodes each five.
    Plain lines where there is no terminal."""
    form = form_of(as_json, as_yaml)
    if web and form is not None:
        raise click.UsageError("--web is for a browser: leave out --json and --yaml")
    if listen is not None and not web:
        raise click.UsageError("--listen is where --web is served: add --web")
    # Each is imported by whoever asks for it: who asks for a node does without the API server's client and what reads
    # its objects.
    with suppress(KeyboardInterrupt):  # the way to end it
        if web and cluster:
            from edgeshare.cli.page.serve import serve_cluster  # noqa: PLC0415

            serve_cluster(kubeconfig, service, listen or LISTEN)
        elif web:
            from edgeshare.cli.page.serve import serve_node  # noqa: PLC0415

            serve_node(runtime_dir, listen or LISTEN)
        elif cluster:
            from edgeshare.cli.status.cluster_live import live  # noqa: PLC0415

            live(kubeconfig, service, form)
        else:
            with ManagerClient(runtime_dir.absolute()) as client:
                _pass_on(client.watch(NS_PER_S), form)


def _pass_on(statuses: Iterator[NodeStatus], form: Form | None) -> None:
    if form is None:
        show(statuses, Console())
        return
    for status in statuses:
        write_look(of_node(status), time.time(), "", form)


def show(statuses: Iterator[NodeStatus], console: Console) -> None:
    """Draws each status as it comes: in place on a terminal, else as lines."""
    if console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for status in statuses:
                live.update(Group(device_table(status), "", share_table(status)), refresh=True)
        return
    for status in statuses:
        for share in status.allocations:
            cells = zip(SHARE_COLUMNS, share_cells(status, share), strict=True)
            click.echo("  ".join(f"{name}: {cell}" for name, cell in cells))
