"""``edgeshare replay``: how well the cluster part's policies do, on recorded clusters and in published experiments."""

import click

from edgeshare.cli import CLUSTER_PART, needing

with needing(CLUSTER_PART, "replay"):
    from edgeshare.cli.replay import mlperf, openb


@click.group("replay")
def command() -> None:
    """Replays recorded clusters and published experiments through the policies of the cluster part."""


command.add_command(openb.openb)
command.add_command(mlperf.mlperf)
