"""What the bench prints: rows, their targets, and how people and scripts read them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from bench.figures import median


@dataclass(frozen=True)
class Target:
    """What a figure should not exceed, or (``at_least``) not fall below."""

    value: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        return value >= self.value if self.at_least else value <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.value:g}"


@dataclass(frozen=True)
class Row:
    """One figure: the median of ``runs``, each a difference, a ratio, or something with a floor beside it."""

    figure: str
    unit: str
    runs: Sequence[float]
    settings: Mapping[str, str | float] = field(default_factory=dict)
    with_edgeshare: Sequence[float] = ()
    """What was measured with it in each run, where the figure is made of two."""
    without_edgeshare: Sequence[float] = ()
    """What was measured without it in the same runs, or the machine's floor."""
    target: Target | None = None
    must_miss: bool = False
    """A control: what happens with no edgeshare, which has to miss the target, or the figure says nothing."""
    note: str = ""
    others_percent: float | None = None
    """How busy other programs kept this machine's processors meanwhile."""

    @property
    def value(self) -> float:
        return median(self.runs)

    @property
    def met(self) -> bool | None:
        """Whether the target is met (of a control: missed, as it has to be); None where there is none."""
        if self.target is None:
            return None
        return self.target.met(self.value) != self.must_miss

    def __str__(self) -> str:
        """The row as a line of a log."""
        setting = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        verdict = {None: "", True: ", met", False: ", MISSED"}[self.met]
        target = f" (target: {'not ' if self.must_miss else ''}{self.target}{verdict})" if self.target else ""
        others = "" if self.others_percent is None else f"; others had {self.others_percent:.0f} % of the processors"
        return f"{self.figure} [{setting}]: {self.value:.4g} {self.unit}{target}{others}"

    @property
    def high_is_bad(self) -> bool:
        """Whether of two values the higher one is further from what it should be."""
        return (self.target is None or not self.target.at_least) != self.must_miss

    def as_json(self) -> dict[str, object]:
        row: dict[str, object] = {
            "figure": self.figure,
            "settings": dict(self.settings),
            "unit": self.unit,
            "value": round(self.value, 3),
            "runs": rounded(self.runs),
        }
        if self.with_edgeshare:
            row["with"] = rounded(self.with_edgeshare)
        if self.without_edgeshare:
            row["without"] = rounded(self.without_edgeshare)
        if self.target is not None:
            row["target"] = {"at_least" if self.target.at_least else "at_most": self.target.value}
            row["met"] = self.met
        if self.must_miss:
            row["must_miss"] = True
        if self.note:
            row["note"] = self.note
        if self.others_percent is not None:
            row["others_cpu_percent"] = round(self.others_percent, 1)
        return row


def rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 3) for value in values]


def as_table(rows: Sequence[Row], title: str) -> Table:
    """The rows for a terminal."""
    table = Table(title=title, title_justify="left")
    table.add_column("figure")
    table.add_column("setting")
    table.add_column("value", justify="right")
    table.add_column("with / without", justify="right")
    table.add_column("target", justify="right")
    table.add_column("met")
    for row in rows:
        pair = ""
        if row.with_edgeshare and row.without_edgeshare:
            pair = f"{median(row.with_edgeshare):.4g} / {median(row.without_edgeshare):.4g}"
        verdict = {None: "", True: "[green]yes", False: "[red]no"}[row.met]
        if row.must_miss and row.met:
            verdict = "[green]missed, as it must"
        table.add_row(
            row.figure,
            ", ".join(f"{name} {value}" for name, value in row.settings.items()),
            f"{row.value:.4g} {row.unit}",
            pair,
            str(row.target) if row.target else "",
            verdict,
        )
    return table


def as_markdown(rows: Sequence[Row]) -> str:
    """One line for each figure that has a target, for a README: the worst of its settings, and how many met it."""
    lines = ["| figure | target | worst of its settings | best | met |", "|---|---|---|---|---|"]
    groups: dict[tuple[str, str, bool], list[Row]] = {}
    for row in rows:
        if row.target is not None:
            groups.setdefault((row.figure, str(row.target), row.must_miss), []).append(row)
    for (figure, target, must_miss), group in groups.items():
        ordered = sorted(group, key=lambda row: row.value, reverse=not group[0].high_is_bad)
        best, worst = ordered[0], ordered[-1]
        setting = ", ".join(f"{name} {value}" for name, value in worst.settings.items())
        met = sum(bool(row.met) for row in group)
        cells = (
            f"{figure}, no hook (control)" if must_miss else figure,
            f"not {target} {worst.unit}" if must_miss else f"{target} {worst.unit}",
            f"{worst.value:.3g} ({setting})",
            f"{best.value:.3g}" if len(group) > 1 else "",
            f"{met} of {len(group)}" if len(group) > 1 else "yes" if met else "no",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
