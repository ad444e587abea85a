"""The options of what shows a node, or the cluster."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from edgeshare.contract.names import RUNTIME_DIR

PATH = click.Path(path_type=Path)

SERVED_AS = "edgeshare-status.edgeshare.svc"
"""What a certificate of the service names where the chart's release and its namespace are called as shipped."""

runtime_dir_option = click.option(
    "--runtime-dir",
    type=PATH,
    default=RUNTIME_DIR,
    show_default=True,
    help="Where the share manager has its sockets.",
)


def of_what(function: Callable[..., None]) -> Callable[..., None]:
    """--runtime-dir, or --cluster and --kubeconfig, with which --cluster-status and what belongs to it come as
    ``service``: a Service, or None."""

    @wraps(function)
    def called(
        cluster_status: str | None, cluster_status_ca: Path | None, cluster_status_name: str | None, **others: Any
    ) -> None:
        namespace = others.pop("namespace")
        if cluster_status is None:
            if cluster_status_ca or cluster_status_name or namespace:
                raise click.UsageError("--cluster-status-ca, -name and --namespace need --cluster-status")
            return function(service=None, **others)
        if not others["cluster"] or cluster_status_ca is None:
            raise click.UsageError("--cluster-status needs --cluster and --cluster-status-ca")
        # Who asks for a node does without the API server's client.
        from edgeshare.cli.status.service import Service  # noqa: PLC0415

        service = Service(
            cluster_status, cluster_status_ca.expanduser(), cluster_status_name or SERVED_AS, namespace or ""
        )
        return function(service=service, **others)

    why = "Of all nodes, as the API server knows them: what `kubectl edgeshare` shows."
    where = "With --cluster: how the API server is reached."
    asked = "With --cluster: where the cluster's status is served, to show use, memory and who waits, too."
    named = f"What its certificate names. [default: {SERVED_AS}]"
    shown: Callable[..., None] = called
    for option in (
        click.option("--namespace", metavar="NAME", help="With --cluster-status: of this namespace alone."),
        click.option("--cluster-status-name", metavar="NAME", help=named),
        click.option("--cluster-status-ca", type=PATH, metavar="FILE", help="Who signed its certificate."),
        click.option("--cluster-status", metavar="HOST:PORT", help=asked),
        click.option(
            "--kubeconfig", type=PATH, envvar="KUBECONFIG", default="~/.kube/config", show_default=True, help=where
        ),
        click.option("--cluster", is_flag=True, help=why),
        runtime_dir_option,
    ):
        shown = option(shown)
    return shown
