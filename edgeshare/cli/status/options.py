"""The options of what shows a node, or the cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from edgeshare.contract.names import RUNTIME_DIR

Function = TypeVar("Function", bound=Callable[..., None])

PATH = click.Path(path_type=Path)

runtime_dir_option = click.option(
    "--runtime-dir",
    type=PATH,
    default=RUNTIME_DIR,
    show_default=True,
    help="Where the share manager has its sockets.",
)


def of_what(function: Function) -> Function:
    """--runtime-dir, or --cluster and --kubeconfig."""
    why = "Of all nodes, as the API server knows them: what `kubectl edgeshare` shows."
    where = "With --cluster: how the API server is reached."
    for option in (
        click.option(
            "--kubeconfig", type=PATH, envvar="KUBECONFIG", default="~/.kube/config", show_default=True, help=where
        ),
        click.option("--cluster", is_flag=True, help=why),
        runtime_dir_option,
    ):
        function = option(function)
    return function
