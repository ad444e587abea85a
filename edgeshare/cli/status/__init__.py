"""``edgeshare status``: who has which share of this node's devices, or of the cluster's.

``node_view.py`` shows a node, ``told.py`` tells programs. ``cluster.py`` reads what the cluster's API server knows,
``cluster_view.py`` shows it, ``cluster_live.py`` again and again; ``service.py`` and ``service_view.py`` do where the
cluster's status is served, with how much is used."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console, RenderableType

from edgeshare.cli.status.node_view import device_table, share_table
from edgeshare.cli.status.options import of_what
from edgeshare.cli.status.told import Json, form_of, of_cluster, of_node, of_service, write
from edgeshare.client import ManagerClient
from edgeshare.contract.units import NS_PER_S

if TYPE_CHECKING:
    from edgeshare.cli.status.service import Service

COLUMNS = 400
"""Nothing is cut to fit a terminal: whoever asks once wants to read it, or gives it to another program."""


@click.command("status")
@of_what
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="As JSON: of a node GetNodeStatus, of --cluster-status GetClusterStatus and the pods that wait, every field.",
)
@click.option("--yaml", "as_yaml", is_flag=True, help="The same as YAML.")
def command(
    runtime_dir: Path, cluster: bool, kubeconfig: Path, service: "Service | None", as_json: bool, as_yaml: bool
) -> None:
    """Shows who has which share of this node's devices, or with --cluster of all nodes'."""
    form = form_of(as_json, as_yaml)
    if service is not None:
        told, shown = _of_service(kubeconfig, service)
    else:
        told, shown = _of_cluster(kubeconfig) if cluster else _of_node(runtime_dir)
    if form is not None:
        write(told, form)
        return
    console = Console(width=COLUMNS, markup=False, emoji=False)
    for each in shown:
        console.print(each)


def _of_node(runtime_dir: Path) -> tuple[Json, list[RenderableType]]:
    with ManagerClient(runtime_dir.absolute()) as client:
        status = client.status()
    shown: list[RenderableType] = [device_table(status), ""]
    if status.allocations:
        shown += [share_table(status), f"shares of the last {status.window_ns / NS_PER_S:g} s"]
    else:
        shown.append("no allocations")
    return of_node(status), shown


def _of_cluster(kubeconfig: Path) -> tuple[Json, list[RenderableType]]:
    # Who asks for a node does without the API server's client and what reads its objects.
    from edgeshare.cli.status.cluster import look  # noqa: PLC0415
    from edgeshare.cli.status.cluster_view import tables  # noqa: PLC0415
    from edgeshare.kube.kube import Kube  # noqa: PLC0415

    cluster = look(Kube.from_kubeconfig(kubeconfig.expanduser()))
    return of_cluster(cluster), tables(cluster)


def _of_service(kubeconfig: Path, service: "Service") -> tuple[Json, list[RenderableType]]:
    # As _of_cluster.
    from edgeshare.cli.status.service import asking  # noqa: PLC0415
    from edgeshare.cli.status.service_view import tables  # noqa: PLC0415
    from edgeshare.kube.kube import Kube  # noqa: PLC0415

    with asking(service, Kube.from_kubeconfig(kubeconfig.expanduser())) as ask:
        used = ask()
    return of_service(used), tables(used)
