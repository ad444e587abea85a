"""A cluster's devices, looked at again and again."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from edgeshare.cli.status import cluster_view, service_view
from edgeshare.cli.status.cluster import look
from edgeshare.cli.status.service import Service, asking
from edgeshare.contract.errors import EdgeshareError
from edgeshare.kube.kube import Kube

LOOK_S = 5.0
"""Between two looks at a cluster: each reads all of its AcceleratorNodes."""

Seen = TypeVar("Seen")

Look = tuple[Seen, str]
"""What was seen last, and why it is not of now; empty where it is."""


def looks(look: Callable[[], Seen], pause: Callable[[float], None] = time.sleep) -> Iterator[Look[Seen]]:
    """Looks again and again. Who does not answer any more leaves what was seen before; raises what it says where that
    is so to begin with."""
    seen, seen_at = look(), time.strftime("%H:%M:%S")
    why = ""
    while True:
        yield seen, why
        pause(LOOK_S)
        try:
            seen, seen_at, why = look(), time.strftime("%H:%M:%S"), ""
        except EdgeshareError as error:
            why = f"as it was at {seen_at}: {error}"


def live(kubeconfig: Path, service: Service | None) -> None:
    """Shows it until it is interrupted. Raises Unavailable where the API server cannot be asked to begin with, and as
    ``asking`` does where there is a service."""
    kube = Kube.from_kubeconfig(kubeconfig.expanduser())
    console = Console(markup=False, emoji=False)
    if service is None:
        show(looks(partial(look, kube)), cluster_view.tables, cluster_view.lines, console)
        return
    with asking(service, kube) as ask:
        show(looks(ask), service_view.tables, service_view.lines, console)


def show(
    seen: Iterator[Look[Seen]],
    tables: Callable[[Seen], list[RenderableType]],
    lines: Callable[[Seen], Iterator[str]],
    console: Console,
) -> None:
    """Draws each: in place on a terminal, else as lines."""
    if console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for cluster, why in seen:
                shown = [*tables(cluster), "", why]
                live.update(Group(*shown), refresh=True)
        return
    for cluster, why in seen:
        for line in lines(cluster):
            click.echo(line)
        if why:
            click.echo(why)
