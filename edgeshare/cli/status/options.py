"""The options of what shows a node, or the cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., None])


def of_cluster(function: Function) -> Function:
    """--cluster and --kubeconfig."""
    path = click.Path(path_type=Path)
    why = "Of all nodes, as the API server knows them: what `kubectl edgeshare` shows."
    where = "With --cluster: how the API server is reached."
    kubeconfig = click.option(
        "--kubeconfig", type=path, envvar="KUBECONFIG", default="~/.kube/config", show_default=True, help=where
    )
    return click.option("--cluster", is_flag=True, help=why)(kubeconfig(function))
