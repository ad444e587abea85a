"""``edgeshare demo``: four workloads share two simulated GPUs, and the rule is seen to hold."""

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console
from rich.live import Live

from edgeshare.cli import SIMULATED_MACHINE, needing
from edgeshare.contract.errors import EdgeshareError

with needing(SIMULATED_MACHINE, "demo"):
    from edgeshare.cli.demo_plan import Phase, Verdict, make_phases
    from edgeshare.cli.demo_run import SHOWN_WINDOW_NS, perform
    from edgeshare.cli.demo_view import Picture, picture_lines, picture_view, verdict_lines, verdict_table
    from simgpu.stage.other_load import OtherLoad
    from simgpu.stage.stage import open_stage

SHARED_MEMORY = Path("/dev/shm")
"""Where the simulated machine lies if it can: its clock is memory that all its processes share."""

SCRATCH_PREFIX = "edgeshare-demo-"
LOGS_PREFIX = "edgeshare-demo-logs-"
"""Before the pid, in the names of a demo's two folders."""

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@click.command("demo")
@click.option("--seconds", type=int, default=30, show_default=True, help="How long the workloads run.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, and nothing else.")
def command(seconds: int, as_json: bool) -> None:
    """Shares two simulated GPUs among four workloads, and judges who got what.

    Three share one GPU at 50, 30 and 20 percent, one has the other to itself; for the middle third the first
    one pauses. The exit status is 0 only if each got what the rule says, as the simulated GPUs executed it,
    within one percentage point in each third, less its first two seconds.
    """
    phases = make_phases(seconds)
    with ended_by_signals(), scratch_folder() as folder, log_folder() as logs:
        load = OtherLoad()
        verdict = run(phases, folder, logs, as_json)
        others_percent = load.percent()
        if as_json:
            click.echo(json.dumps(verdict.as_json()))
        else:
            Console().print(verdict_table(verdict))
            click.echo("\n".join(verdict_lines(verdict)))
        if not verdict.ok:
            raise EdgeshareError(
                f"not every share was what the rule says; other programs kept this machine's processors "
                f"{others_percent:.0f} % busy meanwhile; the logs are in {logs}"
            )


def run(phases: tuple[Phase, ...], folder: Path, logs: Path, as_json: bool) -> Verdict:
    """The demo on a machine that is made in ``folder``, shown live unless only JSON is wanted."""
    if as_json:
        with open_stage(folder, logs) as stage:
            return perform(stage, phases, lambda picture: None)
    console = Console()
    if not console.is_terminal:
        with open_stage(folder, logs) as stage:
            return perform(stage, phases, every_window(lambda lines: click.echo("\n".join(lines))))
    with Live("starting", console=console, auto_refresh=False) as live, open_stage(folder, logs) as stage:
        return perform(stage, phases, lambda picture: live.update(picture_view(picture, SHOWN_WINDOW_NS), refresh=True))


def every_window(write: Callable[[list[str]], None]) -> Callable[[Picture], None]:
    """Writes a picture's lines once for each window that its shares are of."""
    next_ns = SHOWN_WINDOW_NS

    def show(picture: Picture) -> None:
        nonlocal next_ns
        if picture.elapsed_ns >= next_ns:
            next_ns += SHOWN_WINDOW_NS
            write(picture_lines(picture))

    return show


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end this process as Ctrl-C does: with everything that it started."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the machine and the sockets, removed at the end."""
    parent = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH_PREFIX}{os.getpid()}-", dir=parent) as folder:
        yield Path(folder)


@contextmanager
def log_folder() -> Iterator[Path]:
    """A folder for the logs, which stays where an error says to look into it."""
    folder = Path(tempfile.mkdtemp(prefix=f"{LOGS_PREFIX}{os.getpid()}-"))
    try:
        yield folder
    except Exception:
        raise
    except BaseException:
        # Interrupted: nobody asked for the logs.
        shutil.rmtree(folder)
        raise
    else:
        shutil.rmtree(folder)
