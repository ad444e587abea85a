"""How the demo looks: a picture of one moment in, something for rich or a line of text out. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, JustifyMethod, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edgeshare.cli.demo_plan import TOLERANCE_PERCENT, Phase, Verdict, Workload
from edgeshare.contract.units import MIB, NS_PER_MS, NS_PER_S


@dataclass(frozen=True)
class WorkloadRow:
    """One workload at one moment."""

    workload: Workload
    rule_percent: float
    executed_percent: float
    """Of the last seconds, as the simulated GPU executed it."""
    queued_ns: int
    waiting_ns: int
    memory_used_bytes: int
    memory_mib: int
    """Its cap; 0 while the manager has not told of it yet."""


@dataclass(frozen=True)
class Picture:
    """The demo at one moment."""

    elapsed_ns: int
    total_ns: int
    phase: Phase
    workloads: Sequence[WorkloadRow]


COLUMNS = ("workload", "gpu", "request", "limit", "rule", "executed", "", "queued", "waiting", "memory, MiB")


def picture_view(picture: Picture, window_ns: int) -> RenderableType:
    """The live table; shares are of the last ``window_ns``."""
    table = Table(box=None, pad_edge=False, expand=True)
    for column in COLUMNS:
        justify: JustifyMethod = "left" if column in ("workload", "") else "right"
        table.add_column(column, justify=justify, no_wrap=True, ratio=None if column else 1)
    for row in picture.workloads:
        cells = workload_cells(row)
        bar = ProgressBar(100, row.executed_percent)
        table.add_row(*cells[:6], bar, *cells[6:])
    caption = Text(
        f"executed: by the simulated GPU, in the last {window_ns // NS_PER_S} s; rule: what it should be now",
        style="dim",
    )
    return Group(Text(heading(picture), style="bold"), table, caption)


def heading(picture: Picture) -> str:
    """Where the demo is."""
    return f"{picture.elapsed_ns / NS_PER_S:4.1f} of {picture.total_ns // NS_PER_S} s   {picture.phase.name}"


def workload_cells(row: WorkloadRow) -> tuple[str, ...]:
    """The cells of one workload, as COLUMNS names them, without the bar."""
    workload = row.workload
    used_mib = row.memory_used_bytes // MIB
    return (
        workload.name,
        str(workload.gpu),
        f"{workload.request_percent} %",
        f"{workload.limit_percent} %",
        f"{row.rule_percent:.0f} %",
        f"{row.executed_percent:.1f} %",
        f"{row.queued_ns / NS_PER_MS:.1f} ms",
        f"{row.waiting_ns / NS_PER_MS:.1f} ms",
        f"{used_mib} of {row.memory_mib}",
    )


def picture_lines(picture: Picture) -> list[str]:
    """A picture where stdout is no terminal: a line for each workload."""
    named = [column for column in COLUMNS[1:] if column]
    return [
        "  ".join(
            (
                f"{heading(picture)}: {row.workload.name:5}",
                *(f"{name} {cell}" for name, cell in zip(named, workload_cells(row)[1:], strict=True)),
            )
        )
        for row in picture.workloads
    ]


def verdict_table(verdict: Verdict) -> Table:
    """What each workload got in each phase, beside the rule."""
    table = Table(title="executed by the simulated GPUs (rule), in percent of each", title_justify="left")
    table.add_column("workload")
    table.add_column("gpu", justify="right")
    table.add_column("request", justify="right")
    for result in verdict.phases:
        table.add_column(result.phase.name, justify="right")
    for shares in zip(*(result.shares for result in verdict.phases), strict=True):
        workload = shares[0].workload
        table.add_row(
            workload.name,
            str(workload.gpu),
            str(workload.request_percent),
            *(
                f"[{'green' if share.ok else 'red'}]{share.executed_percent:.2f}[/] ({share.expected_percent:.0f})"
                for share in shares
            ),
        )
    return table


def verdict_lines(verdict: Verdict) -> list[str]:
    """The last words: that all is well, or which shares are not."""
    if verdict.ok:
        return [f"every workload got what the rule says, within {TOLERANCE_PERCENT:g} percentage point"]
    return verdict.failures() or ["nothing was judged"]
