"""What a replay found, as a table, as JSON and as plots."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from rich.table import Table

from edgeshare.cli.replay.sharing import canvas
from sharemgr.replay.arrivals import REPORTED_PERCENT, Moment, at_percent


@dataclass(frozen=True)
class Figure:
    """A figure over all runs."""

    mean: float
    sd: float
    """Of a sample; 0 for one run."""


class Run:
    """The run of one seed."""

    def __init__(self, moments: Sequence[Moment]) -> None:
        self.allocated = at_percent(moments)
        told = [moment for moment in moments if moment.fragmented_percent is not None]
        self.arrived_percent = [moment.arrived_percent for moment in told]
        self.allocated_percent = [moment.allocated_percent for moment in told]
        self.fragmented_percent = [moment.fragmented_percent or 0.0 for moment in told]


class Report:
    """The runs of all seeds."""

    def __init__(self, policy: str, runs: Sequence[Run]) -> None:
        self.policy = policy
        self.runs = runs
        self.allocated = {percent: _figure([run.allocated[percent] for run in runs]) for percent in REPORTED_PERCENT}

    def as_json(self) -> dict[str, Any]:
        """As scripts rely on it; percents with two digits after the point."""
        allocated = {
            str(percent): {"mean": round(figure.mean, 2), "sd": round(figure.sd, 2)}
            for percent, figure in self.allocated.items()
        }
        return {"policy": self.policy, "allocated_percent": allocated}

    def table(self) -> Table:
        """For people."""
        table = Table(title=f"policy {self.policy}, {len(self.runs)} runs: percent of all GPUs")
        for column in ("arrived", "allocated, mean", "sd"):
            table.add_column(column, justify="right")
        for percent, figure in self.allocated.items():
            table.add_row(str(percent), f"{figure.mean:.2f}", f"{figure.sd:.2f}")
        return table

    def plot(self, folder: Path) -> list[Path]:
        """Draws allocation and fragmentation over arrival, a line a run, and returns the files."""
        lines = {
            "allocation": ("allocated", [run.allocated_percent for run in self.runs]),
            "fragmentation": ("free and of no use to the next pod", [run.fragmented_percent for run in self.runs]),
        }
        paths = []
        for name, (label, of_runs) in lines.items():
            drawing = canvas(8, 5)
            axes = drawing.subplots()
            for run, heights in zip(self.runs, of_runs, strict=True):
                axes.plot(run.arrived_percent, heights, linewidth=0.8)
            axes.set(xlabel="arrived, % of all GPUs", ylabel=f"{label}, % of all GPUs", title=f"policy {self.policy}")
            axes.grid(alpha=0.3)
            paths.append(folder / f"{name}-{self.policy}.png")
            drawing.savefig(paths[-1], dpi=120)
        return paths


def _figure(values: Sequence[float]) -> Figure:
    return Figure(fmean(values), stdev(values) if len(values) > 1 else 0.0)
