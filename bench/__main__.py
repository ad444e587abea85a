"""``python -m bench [--quick] [FIGURE…]``: measures the figures and prints them as JSON on stdout."""

import json
import signal
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import crowd, drains, faults, floors, latency, launch, memory, shares, slices, usage
from bench.host import describe_host
from bench.measurement import FULL, QUICK, Bench, Measurement
from bench.report import Row, as_table
from edgeshare.cli.demo_load import OtherLoad
from edgeshare.errors import EdgeshareError

NOTE = (
    "Figures are from a simulated driver: GPU time is what the simulated GPU executed, host time is this "
    "machine's. Each is the median of its runs."
)

FIGURES = {
    "floors": floors.measurements,
    "launch": launch.measurements,
    "slices": slices.measurements,
    "drains": drains.measurements,
    "shares": shares.measurements,
    "faults": faults.measurements,
    "latency": latency.measurements,
    "memory": memory.measurements,
    "usage": usage.measurements,
    "crowd": crowd.measurements,
}


@click.command("bench")
@click.option("--quick", is_flag=True, help="Fewer and shorter runs, for a look while developing.")
@click.argument("figures", nargs=-1, type=click.Choice(list(FIGURES)))
def main(quick: bool, figures: tuple[str, ...]) -> None:
    """Measures what sharing costs and whether the shares hold, each figure beside what it is without."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    console = Console(stderr=True)
    effort = QUICK if quick else FULL
    planned = [
        measurement
        for name, measurements in FIGURES.items()
        if not figures or name in figures
        for measurement in measurements(effort)
    ]
    host = describe_host()
    load = OtherLoad()
    with tempfile.TemporaryDirectory(prefix="edgeshare-bench-") as folder, Bench(Path(folder)) as bench:
        rows = measure(planned, bench, console)
    host["others_cpu_percent"] = round(load.percent(), 1)
    if console.is_terminal:
        console.print(as_table(rows))
    report = {"machine": host, "note": NOTE, "quick": quick, "rows": [row.as_json() for row in rows]}
    click.echo(json.dumps(report, indent=1, ensure_ascii=False))


def measure(planned: list[Measurement], bench: Bench, console: Console) -> list[Row]:
    """Does one after the other; says on stderr which."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(planned))
        for measurement in planned:
            progress.update(task, description=measurement.name)
            if not console.is_terminal:
                console.print(f"measuring {measurement.name}", highlight=False)
            rows += measurement.measure(bench)
            progress.advance(task)
    return rows


if __name__ == "__main__":
    try:
        main()
    except EdgeshareError as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
