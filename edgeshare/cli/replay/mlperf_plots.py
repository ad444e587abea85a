"""Plots of the published experiment: each figure over how much is declared too much."""

from pathlib import Path

from edgeshare.cli.replay.mlperf_report import Report, name
from edgeshare.cli.replay.sharing import canvas
from sharemgr.replay.engines import PERCENTS

PANELS = {
    "p99_s": "p99 from arrival to end, s",
    "mean_s": "mean from arrival to end, s",
    "pending_s": "pending, s",
    "makespan_s": "until the last has ended, s",
    "memory_percent": "memory in use, %",
    "utilisation_percent": "GPU utilisation, %",
    "power_w": "power, W",
    "restarts": "crashes a run",
}
STYLES = {"kubernetes": ":", "alibaba": ":", "oracle": "--", "unlimited": "--"}
"""Of lines that are not a policy's."""


def plot(report: Report, folder: Path) -> list[Path]:
    """Draws a picture for each arrival setting of the report into the folder, and returns the files."""
    paths = []
    for setting in dict.fromkeys(row.setting for row in report.rows):
        drawing = canvas(16, 8)
        panels = drawing.subplots(2, 4, sharex=True)
        for axes, figure in zip(panels.flat, PANELS, strict=True):
            for row in report.rows:
                if (
                    row.setting == setting
                    and row.rule != "hard"
                    and not row.guaranteed_percent
                    and row.order != "first come"
                ):
                    heights = [report.mean(row, figure, percent) for percent in PERCENTS]
                    axes.plot(PERCENTS, heights, STYLES.get(row.policy, "-"), label=name(row), linewidth=1.2)
            axes.set(title=PANELS[figure], ylim=(0, None))
            axes.grid(alpha=0.3)
        for axes in panels[1]:
            axes.set_xlabel("declared too much, %")
        drawing.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
        drawing.suptitle(f"A pod each {setting} s, one V100; fault: {report.fault}; mean of {report.seeds} seeds")
        paths.append(folder / f"mlperf-{setting}.png")
        drawing.savefig(paths[-1], dpi=110)
    return paths
