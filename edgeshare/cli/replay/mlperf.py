"""``edgeshare replay mlperf``: the published experiment on sharing a GPU's memory, for every policy."""

import json
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path

import click
from rich.console import Console

from edgeshare.cli.replay.mlperf_plots import plot
from edgeshare.cli.replay.mlperf_report import Report
from edgeshare.cli.replay.sharing import json_option, plots_option, progress, seeds_option, wrote
from sharemgr.cluster.lending import POLICIES
from sharemgr.replay.experiment import FAULTS, Job, Measured, jobs


@click.command("mlperf")
@click.option(
    "--policy", "policies", type=click.Choice(list(POLICIES)), multiple=True, help="Only these; again for more."
)
@click.option("--fault", type=click.Choice(list(FAULTS)), default="none", show_default=True, help="In a worse world.")
@seeds_option(20, "How many orders and times of arrival, from seed 1 on.")
@json_option
@plots_option("plots: each figure over what is declared too much, one for each arrival setting")
def mlperf(policies: tuple[str, ...], fault: str, seeds: int, as_json: bool, plots: Path | None) -> None:
    """Replays 25 MLPerf engines that ask for more memory than they use.

    They come to one simulated V100, at four paces, each declaring 0 to 250 % more than it needs. Reported are times,
    memory, utilisation, power, restarts and evictions under each policy, beside whole GPUs (kubernetes), sharing by
    what is declared (alibaba), admission by what is truly needed (oracle), and a card without end (unlimited). Two
    rules of when a pod crashes: below 45 % of the memory that it needs, and below all of it (hard)."""
    work = list(jobs(policies or tuple(POLICIES), range(1, seeds + 1), FAULTS[fault]))
    report = Report(_run(work), fault)
    if as_json:
        click.echo(json.dumps(report.as_json()))
    else:
        for table in report.tables():
            Console().print(table)
    if plots is not None:
        wrote(plot(report, plots))


def _run(work: Sequence[Job]) -> list[Measured]:
    """All jobs, on all cores."""
    found: list[Measured] = []
    workers = ProcessPoolExecutor(mp_context=get_context("forkserver"), initializer=begin_worker)
    with workers as pool, progress() as shown:
        done = as_completed([pool.submit(job.run) for job in work])
        try:
            for future in shown.track(done, total=len(work), description="runs of six percents"):
                found += future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return found


def begin_worker() -> None:
    """A worker leaves an interrupt to the command, and ends with it, however that ends: nothing else would tell it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    command = parent_process()
    assert command is not None, "workers alone begin so"
    threading.Thread(target=_end_with, args=(command.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
