"""What the replays have in common: options, progress, and the canvas of their plots."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from edgeshare.contract.errors import Unavailable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS_MAX = 1000


def seeds_option(default: int, help_text: str) -> Callable[[Any], Any]:
    """``--seeds N``."""
    return click.option(
        "--seeds", type=click.IntRange(1, SEEDS_MAX), default=default, show_default=True, help=help_text
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, and nothing else.")


def plots_option(help_text: str) -> Callable[[Any], Any]:
    """``--plots DIR``."""
    return click.option(
        "--plots",
        type=click.Path(file_okay=False, path_type=Path),
        callback=_drawable,
        help=f"Folder for {help_text}. Needs edgeshare[plots].",
    )


def _drawable(context: click.Context, parameter: click.Parameter, folder: Path | None) -> Path | None:
    """Says what is missing before the replay, not after it."""
    if folder is not None:
        canvas(1, 1)
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def progress() -> Progress:
    """On standard error, gone when it is over."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def canvas(width: float, height: float) -> "Figure":
    """To draw on, in inches. Raises Unavailable where matplotlib is not there."""
    try:
        # Imported here: large, and an extra of its own.
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ModuleNotFoundError:
        raise Unavailable("plots need matplotlib: pip install 'edgeshare[plots]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def wrote(paths: list[Path]) -> None:
    """Says so."""
    for path in paths:
        click.echo(f"wrote {path}", err=True)
