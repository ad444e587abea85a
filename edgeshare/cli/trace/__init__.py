"""``edgeshare trace``: some seconds of a node's turns, for Perfetto.

``recording.py`` takes in what the manager tells, ``lines.py`` what that is for one allocation, ``tracks.py`` makes
the trace of it."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from edgeshare.cli.seconds import Seconds
from edgeshare.cli.status.options import PATH, runtime_dir_option
from edgeshare.cli.trace.recording import Recording
from edgeshare.cli.trace.tracks import trace
from edgeshare.client import CALL_TIMEOUT_S, ManagerClient
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.contract.units import NS_PER_S

SECONDS_MAX = 60
"""All of it is kept in memory, and a browser has to take it in: a minute of a busy node has 100 MB."""

SHOWN_S = 2.0
"""Who waits for longer is shown how far it is."""

STDOUT = Path("-")


@click.command("trace")
@runtime_dir_option
@click.option("--seconds", type=Seconds(0.1, SECONDS_MAX), default=5, show_default=True, help="How long to record.")
@click.option("--output", type=PATH, required=True, help="File to write, which is replaced; - for standard output.")
def command(runtime_dir: Path, seconds: float, output: Path) -> None:
    """Records this node's slices, waits and hand-overs, as a trace to be opened at https://ui.perfetto.dev."""
    with ManagerClient(runtime_dir.absolute()) as client:
        recording = Recording(client.status().devices, round(seconds * NS_PER_S))
        with written(output) as file:
            broke_off = record(client, recording, seconds)
            json.dump(trace(recording, broke_off), file, separators=(",", ":"))
    lost = sum(loss.changes for loss in recording.losses)
    took = f"{(recording.end_ns - recording.begin_ns) / NS_PER_S:.1f} s"
    if broke_off:
        raise Unavailable(f"recorded {took} of {seconds:g}, which are written to {output}: {broke_off}")
    click.echo(
        f"wrote {took} to {output}, to be opened at https://ui.perfetto.dev"
        + (f"; {lost} changes of state came too fast and are missing" if lost else ""),
        err=True,
    )


def record(client: ManagerClient, recording: Recording, seconds: float) -> str:
    """Records until it is whole, or the manager ends; returns why it is not whole. Raises Unavailable where it does not
    begin, NoRoom where too many record."""
    console = Console(file=sys.stderr)
    columns = (TextColumn("recording"), BarColumn(), TimeRemainingColumn())
    shown = seconds > SHOWN_S and console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task("", total=seconds)
        try:
            for turns in client.turns(seconds + CALL_TIMEOUT_S):
                recording.take(turns)
                progress.update(task, completed=(recording.end_ns - recording.begin_ns) / NS_PER_S)
                if recording.is_whole:
                    return ""
        except Unavailable as error:
            if recording.begin_ns < 0:
                raise
            return str(error)
    return "the share manager ended"


@contextmanager
def written(output: Path) -> Iterator[TextIO]:
    """A file that is put in place at the end, whole, and not at all on an error. Raises InvalidRequest, before anything
    else, where it cannot be."""
    if output == STDOUT:
        yield sys.stdout
        return
    # What a link leads to is replaced, not the link.
    path = output.resolve()
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no regular file")
        file = fresh.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"{output} cannot be written: {error.strerror or error}") from error
    try:
        with file:
            yield file
        fresh.replace(path)
    except OSError as error:
        raise Unavailable(f"{output} cannot be written: {error.strerror}") from error
    finally:
        fresh.unlink(missing_ok=True)
