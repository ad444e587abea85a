"""``edgeshare sharemgr``: the share managers, each in the foreground, and the certificates that a cluster's takes."""

import asyncio
import os
from functools import partial
from pathlib import Path

import click

from edgeshare.cli import CLUSTER_PART, daemons, loading, needing
from edgeshare.cli.sharemgr.certificates import certificates
from edgeshare.config_file import read_config
from edgeshare.contract.names import RUNTIME_DIR, STATE_DIR
from edgeshare.kube import environment
from edgeshare.kube.kube import Kube

# What each command needs is imported by it alone: memory is counted, on a node most of all.


@click.group("sharemgr")
def command() -> None:
    """Shares a node's devices among their clients, or a cluster's among its pods."""


command.add_command(certificates)


@command.command("node")
@click.option(
    "--runtime-dir",
    type=click.Path(path_type=Path),
    default=RUNTIME_DIR,
    show_default=True,
    help="Where its sockets are made.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=STATE_DIR,
    show_default=True,
    help="Where the allocations are kept across restarts.",
)
@daemons.config_option
def node(runtime_dir: Path, state_dir: Path, config_path: Path | None) -> None:
    """Shares this node's GPUs among the clients of its allocations, until SIGTERM or SIGINT."""
    with loading():
        # Each part of the manager imports what the other runs without.
        from sharemgr.node import config, manager  # noqa: PLC0415
        from sharemgr.node.sockets import loop  # noqa: PLC0415

    daemons.log()
    settings = read_config(config_path, config.Config)
    node_name = environment.node_name(settings.node_name, os.environ)
    in_cluster = settings.kubeconfig is not None or environment.in_pod(os.environ)
    cluster = partial(Kube.reach, settings.kubeconfig) if node_name and in_cluster else None
    shares = manager.Manager(settings, runtime_dir.absolute(), state_dir.absolute(), cluster, node_name)
    with asyncio.Runner(loop_factory=loop.Loop) as runner:
        runner.run(shares.run(ready=lambda text: click.echo(f"edgeshare sharemgr node: ready, {text}")))


@command.command("cluster")
@daemons.config_option
def cluster(config_path: Path | None) -> None:
    """Assigns a cluster's sharePODs to nodes and GPUs, as an extender of kube-scheduler, until SIGTERM or SIGINT."""
    with needing(CLUSTER_PART, "sharemgr cluster"), loading():
        from sharemgr.cluster import config, service  # noqa: PLC0415
        from sharemgr.cluster.replica import replica  # noqa: PLC0415
    daemons.log()
    settings = read_config(config_path, config.Config)
    assigner = replica.Replica(settings, service.Service(settings))
    asyncio.run(assigner.run(ready=lambda url: click.echo(f"edgeshare sharemgr cluster: ready, {url}")))
