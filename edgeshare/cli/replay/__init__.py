"""``edgeshare replay``: how well the cluster part's policies do, on recorded clusters and in published experiments."""

import click

from edgeshare.contract.errors import Unavailable

try:
    from edgeshare.cli.replay import mlperf, openb
except ModuleNotFoundError as error:
    raise Unavailable(f"edgeshare replay needs {error.name}: pip install 'edgeshare[cluster]'") from None


@click.group("replay")
def command() -> None:
    """Replays recorded clusters and published experiments through the policies of the cluster part."""


command.add_command(openb.openb)
command.add_command(mlperf.mlperf)
