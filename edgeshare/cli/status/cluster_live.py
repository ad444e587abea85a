"""A cluster's devices, looked at again and again."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from edgeshare.cli.status import cluster_view, service_view
from edgeshare.cli.status.cluster import look
from edgeshare.cli.status.service import Service, asking
from edgeshare.cli.status.told import Form, Json, of_cluster, of_service, write_look
from edgeshare.contract.errors import EdgeshareError
from edgeshare.kube.kube import Kube
from edgeshare.shown.feed import CLUSTER_LOOK_S

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Look(Generic[Seen]):
    """What was seen last."""

    seen: Seen
    at_s: float
    """When: Unix time."""
    stale: str = ""
    """Why it is not of now; empty where it is."""

    @property
    def notice(self) -> str:
        """What to say to people who see it; nothing where it is of now."""
        when = time.strftime("%H:%M:%S", time.localtime(self.at_s))
        return f"as it was at {when}: {self.stale}" if self.stale else ""


def looks(look: Callable[[], Seen], pause: Callable[[float], None] = time.sleep) -> Iterator[Look[Seen]]:
    """Looks again and again. Who does not answer any more leaves what was seen before; raises what it says where that
    is so to begin with."""
    last = Look(look(), time.time())
    while True:
        yield last
        pause(CLUSTER_LOOK_S)
        try:
            last = Look(look(), time.time())
        except EdgeshareError as error:
            last = replace(last, stale=str(error))


def live(kubeconfig: Path, service: Service | None, form: Form | None) -> None:
    """Shows it until it is interrupted, or tells it to a program. Raises Unavailable where the API server cannot be
    asked to begin with, and as ``asking`` does where there is a service."""
    kube = Kube.from_kubeconfig(kubeconfig.expanduser())
    if service is None:
        _pass_on(looks(partial(look, kube)), form, of_cluster, cluster_view.tables, cluster_view.lines)
        return
    with asking(service, kube) as ask:
        _pass_on(looks(ask), form, of_service, service_view.tables, service_view.lines)


def _pass_on(
    seen: Iterator[Look[Seen]],
    form: Form | None,
    told: Callable[[Seen], Json],
    tables: Callable[[Seen], list[RenderableType]],
    lines: Callable[[Seen], Iterator[str]],
) -> None:
    if form is None:
        show(seen, tables, lines, Console(markup=False, emoji=False))
        return
    for each in seen:
        write_look(told(each.seen), each.at_s, each.stale, form)


def show(
    seen: Iterator[Look[Seen]],
    tables: Callable[[Seen], list[RenderableType]],
    lines: Callable[[Seen], Iterator[str]],
    console: Console,
) -> None:
    """Draws each: in place on a terminal, else as lines."""
    if console.is_terminal:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for each in seen:
                shown = [*tables(each.seen), "", each.notice]
                live.update(Group(*shown), refresh=True)
        return
    for each in seen:
        for line in lines(each.seen):
            click.echo(line)
        if each.notice:
            click.echo(each.notice)
