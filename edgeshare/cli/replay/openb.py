"""``edgeshare replay openb``: a recorded cluster, placed anew."""

import json
from pathlib import Path

import click
from rich.console import Console

from edgeshare.cli.replay.openb_report import Report, Run
from edgeshare.cli.replay.sharing import json_option, plots_option, progress, seeds_option, wrote
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.replay.arrivals import SEEDS, arrivals, capacity_units, replay
from sharemgr.replay.openb import read_nodes, read_pods

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("openb")
@click.option("--nodes", "nodes_file", type=FILE, required=True, help="CSV, as openb_node_list_gpu_node.csv.")
@click.option("--pods", "pods_file", type=FILE, required=True, help="CSV, as openb_pod_list_default.csv.")
@click.option("--policy", type=click.Choice(list(POLICIES)), default=DEFAULT, show_default=True, help="Who chooses.")
@seeds_option(len(SEEDS), f"How many orders of arrival, from seed {SEEDS[0]} on.")
@json_option
@plots_option("two plots: allocation and fragmentation over arrival")
def openb(nodes_file: Path, pods_file: Path, policy: str, seeds: int, as_json: bool, plots: Path | None) -> None:
    """Replays a trace in the openb format.

    Its pods arrive in random order, then more of them, drawn with replacement, until they ask for 130 % of the GPUs.
    None leaves. Reported is how much of all GPUs is allocated when so much has arrived: mean and standard deviation.
    """
    nodes, pods = read_nodes(nodes_file), read_pods(pods_file)
    units = capacity_units(nodes)
    runs = []
    with progress() as shown:
        for seed in range(SEEDS[0], SEEDS[0] + seeds):
            order = arrivals(pods, units, seed)
            task = shown.add_task(f"{policy}, seed {seed}", total=len(order))
            runs.append(Run(list(shown.track(replay(nodes, order, POLICIES[policy]), task_id=task))))
            shown.remove_task(task)
    report = Report(policy, runs)
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        Console().print(report.table())
    if plots is not None:
        wrote(report.plot(plots))
