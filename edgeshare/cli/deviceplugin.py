"""``edgeshare deviceplugin``: the kubelet's device plugin, in the foreground."""

import asyncio
import os
from pathlib import Path

import click

from deviceplugin.cluster.removal import removal
from deviceplugin.config import Config
from deviceplugin.plugin import Plugin
from edgeshare.cli import daemons
from edgeshare.config_file import read_config
from edgeshare.contract.names import RUNTIME_DIR, STATE_DIR


@click.command("deviceplugin")
@daemons.config_option
@click.option(
    "--runtime-dir",
    type=click.Path(path_type=Path),
    default=RUNTIME_DIR,
    show_default=True,
    help="Where the share manager's sockets are; the same path on the node.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=STATE_DIR,
    show_default=True,
    help="Where the hook library and the allocations are kept; the same path on the node.",
)
@click.option(
    "--kubelet-dir",
    type=click.Path(path_type=Path),
    help="Where the kubelet has its folder device-plugins.  [default: the config's, /var/lib/kubelet]",
)
@click.option(
    "--remove", is_flag=True, help="Takes away what plugins wrote about this node into the cluster, and ends."
)
@click.option("--all-nodes", is_flag=True, help="With --remove: about every node of the cluster.")
@click.option("--crds", is_flag=True, help="With --all-nodes: the kind AcceleratorNode, too.")
def command(
    config_path: Path | None,
    runtime_dir: Path,
    state_dir: Path,
    kubelet_dir: Path | None,
    remove: bool,
    all_nodes: bool,
    crds: bool,
) -> None:
    """Tells the kubelet of this node's GPUs, in hundredths, until SIGTERM or SIGINT.

    At SIGHUP, and when its file changes, the configuration is read anew."""
    if all_nodes and not remove:
        raise click.UsageError("--all-nodes goes with --remove")
    if crds and not all_nodes:
        raise click.UsageError("--crds goes with --all-nodes: other nodes have objects of that kind, too")
    daemons.log()
    if remove:
        for owner, names in removal(read_config(config_path, Config), os.environ, all_nodes, crds):
            for name in names:
                click.echo(f"{owner}: -{name}")
        return
    place = kubelet_dir.absolute() if kubelet_dir is not None else None
    plugin = Plugin(config_path, place, runtime_dir.absolute(), state_dir.absolute(), os.environ)
    asyncio.run(plugin.run(ready=lambda text: click.echo(f"edgeshare deviceplugin: ready, {text}")))
