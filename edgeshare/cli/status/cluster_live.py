"""A cluster's devices, looked at again and again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from edgeshare.cli.status.cluster import Cluster, look
from edgeshare.cli.status.cluster_view import lines, tables
from edgeshare.contract.errors import Unavailable
from edgeshare.kube.kube import Kube

LOOK_S = 5.0
"""Between two looks at a cluster: each reads all of its AcceleratorNodes."""

Look = tuple[Cluster, str]
"""What was seen last, and why it is not of now; empty where it is."""


def looks(kube: Kube, pause: Callable[[float], None] = time.sleep) -> Iterator[Look]:
    """Looks again and again. An API server that goes away leaves what was seen before; raises Unavailable where it is
    not there to begin with."""
    seen, seen_at = look(kube), time.strftime("%H:%M:%S")
    why = ""
    while True:
        yield seen, why
        pause(LOOK_S)
        try:
            seen, seen_at, why = look(kube), time.strftime("%H:%M:%S"), ""
        except Unavailable as error:
            why = f"as it was at {seen_at}: {error}"


def live(kubeconfig: Path) -> None:
    """Shows it until it is interrupted. Raises Unavailable where the API server cannot be asked to begin with."""
    show(looks(Kube.from_kubeconfig(kubeconfig.expanduser())), Console(markup=False, emoji=False))


def show(seen: Iterator[Look], console: Console) -> None:
    """Draws each: in place on a terminal, else as lines."""
    if console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for cluster, why in seen:
                shown: list[RenderableType] = [*tables(cluster), "", why]
                live.update(Group(*shown), refresh=True)
        return
    for cluster, why in seen:
        for line in lines(cluster):
            click.echo(line)
        if why:
            click.echo(why)
