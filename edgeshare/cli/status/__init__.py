"""``edgeshare status``: who has which share of this node's devices, or of the cluster's.

``node_view.py`` shows a node. ``cluster.py`` reads what the cluster's API server knows, ``cluster_view.py`` shows it,
``cluster_live.py`` again and again; ``service.py`` and ``service_view.py`` do where the cluster's status is served,
with how much is used."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml
from google.protobuf.json_format import MessageToDict
from rich.console import Console, RenderableType

from edgeshare.cli.status.node_view import device_table, share_table
from edgeshare.cli.status.options import of_what
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
    if as_json and as_yaml:
        raise click.UsageError("--json and --yaml: name one of them")
    if service is not None:
        told, shown = _of_service(kubeconfig, service)
    else:
        told, shown = _of_cluster(kubeconfig) if cluster else _of_node(runtime_dir)
    if as_json:
        click.echo(json.dumps(told, indent=2))
    elif as_yaml:
        click.echo(yaml.safe_dump(told, sort_keys=False, allow_unicode=True), nl=False)
    else:
        console = Console(width=COLUMNS, markup=False, emoji=False)
        for each in shown:
            console.print(each)


def _of_node(runtime_dir: Path) -> tuple[dict[str, Any], list[RenderableType]]:
    with ManagerClient(runtime_dir.absolute()) as client:
        status = client.status()
    shown: list[RenderableType] = [device_table(status), ""]
    if status.allocations:
        shown += [share_table(status), f"shares of the last {status.window_ns / NS_PER_S:g} s"]
    else:
        shown.append("no allocations")
    return MessageToDict(status, always_print_fields_with_no_presence=True), shown


def _of_cluster(kubeconfig: Path) -> tuple[dict[str, Any], list[RenderableType]]:
    # Who asks for a node does without the API server's client and what reads its objects.
    from edgeshare.cli.status.cluster import look  # noqa: PLC0415
    from edgeshare.cli.status.cluster_view import tables  # noqa: PLC0415
    from edgeshare.kube.kube import Kube  # noqa: PLC0415

    cluster = look(Kube.from_kubeconfig(kubeconfig.expanduser()))
    return cluster.model_dump(), tables(cluster)


def _of_service(kubeconfig: Path, service: "Service") -> tuple[dict[str, Any], list[RenderableType]]:
    # As _of_cluster.
    from edgeshare.cli.status.service import asking  # noqa: PLC0415
    from edgeshare.cli.status.service_view import tables  # noqa: PLC0415
    from edgeshare.kube.kube import Kube  # noqa: PLC0415

    with asking(service, Kube.from_kubeconfig(kubeconfig.expanduser())) as ask:
        used = ask()
    told = MessageToDict(used.state, always_print_fields_with_no_presence=True)
    told["waiting"] = [pod.model_dump() for pod in used.waiting]
    told["waitingUnknown"] = used.waiting_unknown
    return told, tables(used)
