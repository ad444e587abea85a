"""``edgeshare replay``: how well the cluster part's policies do on recorded clusters."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edgeshare.errors import Unavailable

try:
    from edgeshare.cli.replay_report import Report, Run
    from sharemgr.cluster.openb import read_nodes, read_pods
    from sharemgr.cluster.policies import DEFAULT, POLICIES
    from sharemgr.cluster.replay import SEEDS, arrivals, capacity_units, replay
except ModuleNotFoundError as error:
    raise Unavailable(f"edgeshare replay needs {error.name}: pip install 'edgeshare[cluster]'") from None

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("replay")
def command() -> None:
    """Replays recorded clusters through the ledger and the policies of the cluster part."""


@command.command("openb")
@click.option("--nodes", "nodes_file", type=FILE, required=True, help="CSV, as openb_node_list_gpu_node.csv.")
@click.option("--pods", "pods_file", type=FILE, required=True, help="CSV, as openb_pod_list_default.csv.")
@click.option("--policy", type=click.Choice(list(POLICIES)), default=DEFAULT, show_default=True, help="Who chooses.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for two plots: allocation and fragmentation over arrival. Needs edgeshare[plots].",
)
def openb(nodes_file: Path, pods_file: Path, policy: str, as_json: bool, plots: Path | None) -> None:
    """Replays a trace in the openb format, ten times (seeds 42 to 51).

    Its pods arrive in random order, then more of them, drawn with replacement, until they ask for 130 % of the GPUs.
    None leaves. Reported is how much of all GPUs is allocated when so much has arrived: mean and standard deviation.
    """
    nodes, pods = read_nodes(nodes_file), read_pods(pods_file)
    units = capacity_units(nodes)
    runs = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        for seed in SEEDS:
            order = arrivals(pods, units, seed)
            task = progress.add_task(f"{policy}, seed {seed}", total=len(order))
            runs.append(Run(list(progress.track(replay(nodes, order, POLICIES[policy]), task_id=task))))
            progress.remove_task(task)
    report = Report(policy, runs)
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        Console().print(report.table())
    if plots is not None:
        for path in report.plot(plots):
            click.echo(f"wrote {path}", err=True)
