"""``edgeshare deviceplugin``: the kubelet's device plugin, in the foreground."""

import asyncio
import logging
import os
from pathlib import Path

import click

from deviceplugin.plugin import Plugin
from edgeshare.contract.names import RUNTIME_DIR, STATE_DIR


@click.command("deviceplugin")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="YAML file; defaults if absent.")
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
def command(config_path: Path | None, runtime_dir: Path, state_dir: Path, kubelet_dir: Path | None) -> None:
    """Tells the kubelet of this node's GPUs, in hundredths, until SIGTERM or SIGINT.

    At SIGHUP, and when its file changes, the configuration is read anew."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    place = kubelet_dir.absolute() if kubelet_dir is not None else None
    plugin = Plugin(config_path, place, runtime_dir.absolute(), state_dir.absolute(), os.environ)
    asyncio.run(plugin.run(ready=lambda text: click.echo(f"edgeshare deviceplugin: ready, {text}")))
