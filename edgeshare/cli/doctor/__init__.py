"""``edgeshare doctor``: what is missing or wrong on this node, and what mends it.

``look`` and ``runtimes`` see what there is (``facts``); ``rules`` says what it means. Begin with the rules."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from edgeshare.cli.doctor.look import examine
from edgeshare.cli.doctor.rules import Finding, State, findings
from edgeshare.cli.status import COLUMNS
from edgeshare.contract.names import KUBELET_DIR, RUNTIME_DIR, STATE_DIR

COLOURS = {State.FINE: "green", State.NOTE: "yellow", State.WRONG: "bold red"}
FOLDER = click.Path(path_type=Path)


@click.command("doctor")
@click.option("--root", type=FOLDER, default="/", show_default=True, help="Where the node's files are seen.")
@click.option("--kubelet-dir", type=FOLDER, default=KUBELET_DIR, show_default=True, help="The kubelet's folder.")
@click.option("--runtime-dir", type=FOLDER, default=RUNTIME_DIR, show_default=True, help="Of the share manager.")
@click.option(
    "--state-dir", type=FOLDER, default=STATE_DIR, show_default=True, help="From which containers load the hook."
)
@click.option(
    "--json", "as_json", is_flag=True, help="The same as JSON: subject, state, text and mend of each finding."
)
@click.pass_context
def command(
    context: click.Context, root: Path, kubelet_dir: Path, runtime_dir: Path, state_dir: Path, as_json: bool
) -> None:
    """Says what is missing or wrong on this node, and what mends it. It changes nothing. Exit status 1: something is
    wrong."""
    if not root.is_dir():
        raise click.BadParameter(f"{root} is no folder", param_hint="--root")
    found = findings(examine(root, kubelet_dir.absolute(), runtime_dir.absolute(), state_dir.absolute()))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=2))
    else:
        width = None if sys.stdout.isatty() else COLUMNS
        Console(highlight=False, width=width).print(shown(found))
    context.exit(int(any(finding.state is State.WRONG for finding in found)))


def shown(found: Sequence[Finding]) -> Table:
    """A finding a row, and below it what to do; nothing is cut."""
    table = Table.grid(Column(), Column(), Column(overflow="fold"), padding=(0, 2))
    for finding in found:
        text = Text(finding.text)
        if finding.mend:
            text.append(f"\n-> {finding.mend}", "italic")
        table.add_row(Text(finding.state, COLOURS[finding.state]), finding.subject, text)
    return table
