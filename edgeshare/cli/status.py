"""``edgeshare status``: who has which share of this node's devices."""

from pathlib import Path

import click
from google.protobuf.json_format import MessageToJson
from rich.console import Console

from edgeshare.cli.shares import device_table, share_table
from edgeshare.client import ManagerClient
from edgeshare.contract.names import RUNTIME_DIR
from edgeshare.contract.units import NS_PER_S

COLUMNS = 400
"""Nothing is cut to fit a terminal: whoever asks once wants to read it, or gives it to another program."""


@click.command("status")
@click.option(
    "--runtime-dir",
    type=click.Path(path_type=Path),
    default=RUNTIME_DIR,
    show_default=True,
    help="Where the share manager has its sockets.",
)
@click.option("--json", "as_json", is_flag=True, help="GetNodeStatus in protobuf's JSON, every field printed.")
def command(runtime_dir: Path, as_json: bool) -> None:
    """Shows who has which share of this node's devices."""
    with ManagerClient(runtime_dir.absolute()) as client:
        status = client.status()
    if as_json:
        click.echo(MessageToJson(status, always_print_fields_with_no_presence=True))
        return
    console = Console(width=COLUMNS)
    console.print(device_table(status))
    console.print()
    if status.allocations:
        console.print(share_table(status))
        console.print(f"shares of the last {status.window_ns / NS_PER_S:g} s")
    else:
        console.print("no allocations")
