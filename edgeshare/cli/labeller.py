"""``edgeshare labeller``: labels a node with what accelerates it. Each way of running it loads what it needs alone:
start-up and memory count on a small board."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgeshare.cli import daemons
from edgeshare.cli.seconds import Seconds
from edgeshare.config_file import read_config
from edgeshare.kube.environment import known_node_name
from edgeshare.waiting import told_to_end
from labeller.collect import Collector
from labeller.config import Config
from labeller.labels import labels_of

if TYPE_CHECKING:
    from labeller.daemon import Daemon
    from labeller.output import Output


@click.command("labeller")
@daemons.config_option
@click.option("--root", type=click.Path(path_type=Path), help="Where the node's files are seen.  [default: /]")
@click.option("--dry-run", is_flag=True, help="Prints the labels, and writes nothing.")
@click.option("--json", "as_json", is_flag=True, help="The same, as JSON.")
@click.option("--yaml", "as_yaml", is_flag=True, help="The same, as YAML.")
@click.option(
    "-n",
    "nodes",
    multiple=True,
    metavar="NODE",
    help="A devicetree node to label besides the root; may be repeated.  [default: cpu, gpu]",
)
@click.option(
    "--interval",
    "interval_s",
    type=Seconds(1, 86_400),
    metavar="SECONDS",
    help="Runs until SIGTERM: looks so often, when a device comes or goes, and at SIGHUP.  [default: once]",
)
@click.option(
    "--watch-usage",
    is_flag=True,
    help="Runs until SIGTERM, and publishes the accelerators' load as metrics; labels only with an interval.",
)
@click.option("--remove", is_flag=True, help="Takes away all labels that the labeller wrote, and ends.")
@click.option("--all-nodes", is_flag=True, help="With --remove: from every node of the cluster.")
def command(
    config_path: Path | None,
    root: Path | None,
    dry_run: bool,
    as_json: bool,
    as_yaml: bool,
    nodes: tuple[str, ...],
    interval_s: float | None,
    watch_usage: bool,
    remove: bool,
    all_nodes: bool,
) -> None:
    """Finds out what accelerates this node, and labels it."""
    prints = dry_run or as_json or as_yaml
    if as_json and as_yaml:
        raise click.UsageError("choose one of --json and --yaml")
    if (prints or remove) and (interval_s or watch_usage):
        raise click.UsageError("--interval and --watch-usage go with none of --dry-run, --json, --yaml and --remove")
    if prints and remove:
        raise click.UsageError("--remove goes with none of --dry-run, --json and --yaml")
    if all_nodes and not remove:
        raise click.UsageError("--all-nodes goes with --remove")
    daemons.log()
    given = {"root": root, "devicetree_nodes": nodes, "interval_s": interval_s}

    def configure() -> Config:
        config = read_config(config_path, Config)
        return config.model_copy(update={key: value for key, value in given.items() if value})

    config = configure()
    if prints:
        print_labels(config, as_json, as_yaml)
    elif watch_usage and config.interval_s is None:
        asyncio.run(run_on(config, None, watch_usage))
    elif remove:
        remove_labels(config, all_nodes)
    elif config.interval_s is not None:
        label_on(configure, config, config.interval_s, watch_usage)
    else:
        label_once(config)


def print_labels(config: Config, as_json: bool, as_yaml: bool) -> None:
    """Prints the labels that this node would have."""
    collected = Collector(config).look()
    show(labels_of(collected.facts, config.switches()), as_json, as_yaml)
    fail_with(tuple(f"{source}: {why}" for source, why in collected.troubles.items()))


def remove_labels(config: Config, all_nodes: bool) -> None:
    """Takes the labeller's labels away, of this node or of all, and prints which."""
    from labeller import cluster  # noqa: PLC0415

    reached = cluster.reach(config, os.environ)
    if all_nodes:
        for node, labels in reached.remove_everywhere():
            said(node, [f"-{label}" for label in labels])
        return
    node = known_node_name(config.node_name, os.environ)
    said(node, [f"-{label}" for label in reached.remove(node)])


def label_on(configure: Callable[[], Config], config: Config, interval_s: float, watch_usage: bool) -> None:
    """Labels this node so often, until SIGTERM. ``configure`` reads the configuration anew."""
    from labeller.daemon import Daemon  # noqa: PLC0415

    _, output, others = outputs(config)
    asyncio.run(run_on(config, Daemon(configure, interval_s, output, others), watch_usage))


def label_once(config: Config) -> None:
    """Labels this node, and prints what changed."""
    from labeller.daemon import clear, label  # noqa: PLC0415

    node, output, others = outputs(config)
    done = label(Collector(config).look(), config, output)
    for left in clear(others):
        click.echo(f"edgeshare: {left}", err=True)
    said(node, done.written.changed.split())
    fail_with(done.troubles)


def outputs(config: Config) -> tuple[str, "Output", list["Output"]]:
    """This node's name, what the labels are written to, and what may have some of an earlier configuration."""
    from labeller import cluster  # noqa: PLC0415

    reached = cluster.reach(config, os.environ)
    node = known_node_name(config.node_name, os.environ)
    return node, *reached.outputs(node, config.output)


async def run_on(config: Config, daemon: "Daemon | None", watch_usage: bool) -> None:
    """Labels, or watches, or both, until SIGTERM or SIGINT."""
    stop, hangup = told_to_end(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)

    def ready(text: str) -> None:
        click.echo(f"edgeshare labeller: ready, {text}")

    parts = [daemon.run(stop, hangup, ready)] if daemon is not None else []
    if watch_usage:
        from labeller.usage import watching  # noqa: PLC0415

        parts.append(watching.run(config, config.root, stop, ready))
    await asyncio.gather(*parts)


def show(labels: Mapping[str, str], as_json: bool, as_yaml: bool) -> None:
    """Prints the labels: a table for a person, a line each for a program."""
    if as_json:
        click.echo(json.dumps({"labels": labels}, indent=2))
    elif as_yaml:
        import yaml  # noqa: PLC0415

        click.echo(yaml.safe_dump({"labels": dict(labels)}), nl=False)
    elif sys.stdout.isatty():
        from rich import box  # noqa: PLC0415
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415

        table = Table("label", "value", box=box.SIMPLE_HEAD)
        for name, value in labels.items():
            table.add_row(name, value)
        Console().print(table if labels else "nothing that accelerates this node was found: it gets no labels")
    else:
        for name, value in labels.items():
            click.echo(f"{name}={value}")


def said(node: str, changes: list[str]) -> None:
    """Prints what changed on a node."""
    for change in changes:
        click.echo(f"{node}: {change}")


def fail_with(troubles: tuple[str, ...]) -> None:
    """Ends the process with status 1 where there are troubles, each said in a line."""
    for trouble in troubles:
        click.echo(f"edgeshare: {trouble}", err=True)
    if troubles:
        sys.exit(1)
