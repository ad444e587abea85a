"""``python -m bench [--quick] [--table FILE] [FIGURE…]``: measures the figures and prints them as JSON on stdout."""

import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.assigner import cost, floods
from bench.cluster import lending, placement
from bench.hook import launch, memory, threads
from bench.host import describe_host
from bench.machine import floors
from bench.measurement import FULL, QUICK, Bench, Measurement
from bench.node import attacks, crowd, drains, faults, gaps, latency, shares, slices, usage
from bench.page import cluster_part, first_picture
from bench.report import Row, as_markdown, as_table
from edgeshare.contract.errors import EdgeshareError, Unavailable
from simgpu.stage.other_load import OtherLoad

NOTE = (
    "Figures are from a simulated driver: GPU time is what the simulated GPU executed, host time is this "
    "machine's. Each is the median of its runs. Placement, lending, the assigner and the page are without a driver."
)

FIGURES = {
    "floors": floors.measurements,
    "launch": launch.measurements,
    "threads": threads.measurements,
    "slices": slices.measurements,
    "drains": drains.measurements,
    "shares": shares.measurements,
    "faults": faults.measurements,
    "latency": latency.measurements,
    "memory": memory.measurements,
    "usage": usage.measurements,
    "gaps": gaps.measurements,
    "crowd": crowd.measurements,
    "attacks": attacks.measurements,
    "placement": placement.measurements,
    "lending": lending.measurements,
    "assigner": cost.measurements,
    "floods": floods.measurements,
    "page": first_picture.measurements,
    "cluster-page": cluster_part.measurements,
}


@click.command("bench")
@click.option("--quick", is_flag=True, help="Fewer and shorter runs, for a look while developing.")
@click.option(
    "--table", type=click.Path(path_type=Path, dir_okay=False), help="Also writes the README's table, in Markdown."
)
@click.argument("figures", nargs=-1, type=click.Choice(list(FIGURES)))
def main(quick: bool, table: Path | None, figures: tuple[str, ...]) -> None:
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
    if not planned:
        raise Unavailable(f"nothing to measure: no recorded clusters in {placement.FOLDER}: set EDGESHARE_OPENB_DIR")
    host = describe_host()
    load = OtherLoad()
    with tempfile.TemporaryDirectory(prefix="edgeshare-bench-") as folder, Bench(Path(folder)) as bench:
        rows, failures = measure(planned, bench, console)
    host["others_cpu_percent"] = round(load.percent(), 1)
    if console.is_terminal:
        console.print(as_table(rows, "edgeshare on a simulated driver"))
    if table is not None:
        table.write_text(as_markdown(rows), encoding="utf-8")
    report = {"machine": host, "note": NOTE, "quick": quick, "rows": [row.as_json() for row in rows]}
    if failures:
        report["failures"] = failures
    click.echo(json.dumps(report, indent=1, ensure_ascii=False))
    if failures:
        raise Unavailable(f"{len(failures)} of {len(planned)} measurements failed: {failures[0]}")


def measure(planned: list[Measurement], bench: Bench, console: Console) -> tuple[list[Row], list[str]]:
    """Does one after the other; says on stderr which. Returns the rows, and why others are missing: one that fails
    should not cost the minutes of all the rest."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    failures: list[str] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(planned))
        for measurement in planned:
            progress.update(task, description=measurement.name)
            if not console.is_terminal:
                console.print(f"measuring {measurement.name}", highlight=False)
            load, begin_s, managers_s = OtherLoad(), time.monotonic(), bench.managers_cpu_s()
            try:
                taken = measurement.measure(bench)
                # The managers go on, and what goes on counts as others'.
                managers_s = bench.managers_cpu_s() - managers_s
                ours_percent = 100 * managers_s / ((time.monotonic() - begin_s) * (os.cpu_count() or 1))
                others_percent = max(0.0, load.percent() - ours_percent)
                for row in taken:
                    rows.append(replace(row, others_percent=others_percent))
                    if not console.is_terminal:
                        console.print(f"  {row}", highlight=False, markup=False, soft_wrap=True)
            except EdgeshareError as error:
                failures.append(f"{measurement.name}: {error}")
                console.print(f"failed: {failures[-1]}", highlight=False, markup=False, soft_wrap=True)
            progress.advance(task)
    return rows, failures


if __name__ == "__main__":
    try:
        main()
    except EdgeshareError as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)
