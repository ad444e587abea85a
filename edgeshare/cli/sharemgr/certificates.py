"""``edgeshare sharemgr certificates``: what assigner and kube-scheduler need for TLS, made and renewed."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import click

from edgeshare.cli import CLUSTER_PART, loading, needing
from edgeshare.kube.environment import in_pod
from edgeshare.kube.kube import Kube

DAYS = 365
"""As long as kubeadm's own certificates hold (its CertificateValidity)."""
DAYS_MAX = 1825
"""Half of the authority's life (renewal.AUTHORITY_DAYS), so that it signs more than one."""
STATUS_SERVICE = "edgeshare-status"
"""What the chart calls it in a release of its own name."""
DEFAULT_KUBECONFIG = Path("~/.kube/config")


@click.command("certificates")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="Writes files here: ca, tls and scheduler, as .crt and .key."
)
@click.option("--apply", "applies", is_flag=True, help="Writes Secrets: NAME-ca, NAME and NAME-scheduler.")
@click.option(
    "--secret",
    default="edgeshare-assigner-tls",
    show_default=True,
    metavar="NAME",
    help="With --apply: what the chart has as assigner.tls.secretName.",
)
@click.option("--namespace", default="edgeshare", show_default=True, help="The assigner's.")
@click.option("--service", default="edgeshare-assigner", show_default=True, help="The assigner's, in that namespace.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME|IP",
    help="Another name or address that the assigner, and the status, is asked by; may be repeated.",
)
@click.option(
    "--status",
    "has_status",
    is_flag=True,
    help="Also what the cluster's status takes: NAME-status, NAME-status-client and NAME-managers.",
)
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    default=DAYS,
    show_default=True,
    help="How long a new certificate holds.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    envvar="KUBECONFIG",
    help=f"With --apply: how the API server is reached.  [default: the pod's service account, or {DEFAULT_KUBECONFIG}]",
)
def certificates(
    folder: Path | None,
    applies: bool,
    secret: str,
    namespace: str,
    service: str,
    hosts: tuple[str, ...],
    has_status: bool,
    days: int,
    kubeconfig: Path | None,
) -> None:
    """Makes an authority and the certificates of assigner and kube-scheduler, or renews those that need it."""
    if (folder is not None) == applies:
        raise click.UsageError("choose one of --folder and --apply")
    with needing(CLUSTER_PART, "sharemgr certificates"), loading():
        from sharemgr.cluster.issuing import issuing, key_folder, kube_secrets, renewal  # noqa: PLC0415
    more = frozenset(map(renewal.parse_host, hosts))
    wanted = renewal.for_assigner(renewal.service_hosts(service, namespace) | more)
    if has_status:
        wanted |= renewal.for_status(renewal.service_hosts(STATUS_SERVICE, namespace) | more)
    if folder is not None:
        files = key_folder.KeyFolder(folder)
        with files.held():
            show(issuing.issue(files, wanted, datetime.now(UTC), days))
        return
    secrets = kube_secrets.KubeSecrets(Kube.reach(reached_by(kubeconfig)), namespace, secret)
    show(issuing.issue(secrets, wanted, datetime.now(UTC), days))


def show(lines: Iterable[str]) -> None:
    """Prints each line when it is true."""
    for line in lines:
        click.echo(line)


def reached_by(kubeconfig: Path | None) -> Path | None:
    """The kubeconfig file, or None in a pod where none is named."""
    if kubeconfig is None and in_pod(os.environ):
        return None
    return (kubeconfig or DEFAULT_KUBECONFIG).expanduser()
