"""What the replay of the published experiment found, as tables and as JSON."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from sharemgr.replay.engines import ARRIVALS_S, CARD_MIB, PERCENTS
from sharemgr.replay.experiment import BASELINES, Measured, Measures, Row

LOWER = ("p99_s", "mean_s", "pending_s", "makespan_s", "energy_kj")
"""Figures of which less is better: a ratio is the other's over this one's."""
HIGHER = ("memory_percent", "utilisation_percent", "power_w")
"""Figures of which more is taken for better, as published: a ratio is this one's over the other's."""
COUNTS = ("restarts", "evictions", "short_pods", "lost_s", "failed_guarantees")
"""Figures that are given for a run, in the mean."""
COMPARED = (*BASELINES, "pp")
"""What the ratios are against."""
PUBLISHED = {
    "kubernetes": {"p99_s": 3.2, "pending_s": 11, "memory_percent": 2.5, "utilisation_percent": 6.1, "power_w": 1.2},
    "alibaba": {"p99_s": 2.4, "pending_s": 8.6, "memory_percent": 1.5, "utilisation_percent": 2.1, "power_w": 1.1},
}
"""The ratios that the experiment's author reports."""
TITLES = {
    "p99_s": "p99",
    "mean_s": "mean",
    "pending_s": "wait",
    "makespan_s": "all s",
    "energy_kj": "kJ",
    "memory_percent": "mem %",
    "utilisation_percent": "GPU %",
    "power_w": "W",
    "restarts": "crash",
    "evictions": "evicted",
    "short_pods": "short",
    "lost_s": "lost s",
    "failed_guarantees": "failed",
}
"""Of columns; a line of a table has 80."""


class Report:
    """The rows of all settings."""

    def __init__(self, found: Sequence[Measured], fault: str) -> None:
        self.fault = fault
        self.seeds = len({seed for _, _, seed, _ in found})
        self._of: dict[Row, dict[tuple[int, int], Measures]] = {}
        """Row → seed and percent → measures."""
        for row, percent, seed, measures in found:
            self._of.setdefault(row, {})[seed, percent] = measures

    @cached_property
    def rows(self) -> list[Row]:
        """In the order of settings, rules, guaranteed pods, and policies."""
        policies = [*BASELINES, *dict.fromkeys(row.policy for row in self._of)]
        settings = list(ARRIVALS_S)
        return sorted(
            self._of,
            key=lambda row: (
                settings.index(row.setting),
                row.rule,
                row.guaranteed_percent,
                policies.index(row.policy),
                row.order != "largest first",
                row.profiles != "none",
            ),
        )

    def mean(self, row: Row, figure: str, percent: int | None = None) -> float:
        """Over all seeds, and over all percents where none is named."""
        return fmean(
            float(getattr(measures, figure))
            for (_, of_percent), measures in self._of[row].items()
            if percent is None or of_percent == percent
        )

    def most(self, row: Row, figure: str) -> float:
        """Of all runs."""
        return max(float(getattr(measures, figure)) for measures in self._of[row].values())

    def _by_seed(self, row: Row, figure: str) -> dict[int, float]:
        values: dict[int, list[float]] = {}
        for (seed, _), measures in self._of[row].items():
            values.setdefault(seed, []).append(getattr(measures, figure))
        return {seed: fmean(of_seed) for seed, of_seed in values.items()}

    def against(self, row: Row, other: str) -> Row | None:
        """The row that this one is compared with."""
        compared = (row.setting, row.rule, 0, other)
        return next((each for each in self.rows if each[:4] == compared), None)

    def ratio(self, row: Row, other: Row, figure: str) -> tuple[float | None, float]:
        """How many times better than the other: of the means, and the standard deviation of that over seeds."""
        mine, others = self._by_seed(row, figure), self._by_seed(other, figure)
        if figure in LOWER:
            mine, others = others, mine
        if not fmean(others.values()):
            return None, 0.0
        singles = [mine[seed] / others[seed] for seed in mine if others[seed]]
        return fmean(mine.values()) / fmean(others.values()), _sd(singles)

    def as_json(self) -> dict[str, Any]:
        """As scripts rely on it; figures with four digits after the point."""
        return {
            "fault": self.fault,
            "seeds": self.seeds,
            "card_mib": CARD_MIB,
            "percents": list(PERCENTS),
            "published": PUBLISHED,
            "rows": [self._row_json(row) for row in self.rows],
        }

    def _row_json(self, row: Row) -> dict[str, Any]:
        figures = {
            figure: {
                "mean": round(self.mean(row, figure), 4),
                "sd": round(_sd(list(self._by_seed(row, figure).values())), 4),
                "by_percent": {str(percent): round(self.mean(row, figure, percent), 4) for percent in PERCENTS},
            }
            for figure in (*LOWER, *HIGHER, *COUNTS)
        }
        ratios = {}
        for other in COMPARED:
            if (compared := self.against(row, other)) is not None:
                of_other = {figure: self.ratio(row, compared, figure) for figure in (*LOWER, *HIGHER)}
                ratios[other] = {
                    figure: {
                        "ratio": ratio and round(ratio, 4),
                        "sd": round(sd, 4),
                        "is_as_published": is_as_published(other, figure, ratio),
                    }
                    for figure, (ratio, sd) in of_other.items()
                }
        totals = {"restarts": self._total(row, "restarts"), "short_pods": self._total(row, "short_pods")}
        most = int(self.most(row, "evictions_most"))
        return {**row._asdict(), "figures": figures, "ratios": ratios, "totals": totals, "evictions_most": most}

    def _total(self, row: Row, figure: str) -> int:
        return round(sum(float(getattr(measures, figure)) for measures in self._of[row].values()))

    def tables(self) -> Iterator[Table]:
        """For people: a table for each arrival setting, one of the ratios, and one of the guaranteed pods."""
        for setting in ARRIVALS_S:
            yield self._setting_table(setting)
        for other in PUBLISHED:
            yield self._ratio_table(other)
        yield self._guaranteed_table()

    def _setting_table(self, setting: str) -> Table:
        figures = ("p99_s", "mean_s", "pending_s", "memory_percent", "utilisation_percent", "power_w", "makespan_s")
        runs = self.seeds * len(PERCENTS)
        title = f"{_pace(setting)}, fault: {self.fault}. {runs} runs: means; short and crashed in all"
        table = _table(title, "admitted by", *(TITLES[figure] for figure in figures), "short", "crash", "hard")
        for row in self.rows:
            if row.setting == setting and row.rule != "hard" and not row.guaranteed_percent:
                table.add_row(
                    name(row),
                    *(f"{self.mean(row, figure):.0f}" for figure in figures),
                    *(str(self._total(row, figure)) for figure in ("short_pods", "restarts")),
                    str(self._total(row._replace(rule="hard"), "restarts")),
                )
        return table

    def _ratio_table(self, other: str) -> Table:
        figures = tuple(PUBLISHED[other])
        title = f"times better than {other}: ratio of means, deviation over seeds; *: not as published"
        table = _table(title, "a pod each", *(TITLES[figure].removesuffix(" %") for figure in figures))
        table.add_row("published", *(f"{PUBLISHED[other][figure]:g}" for figure in figures), end_section=True)
        for row in self.rows:
            compared = self.against(row, other)
            if compared is None or row.rule == "hard" or row.guaranteed_percent or row.order == "first come":
                continue
            if row.policy not in BASELINES or row.policy == "oracle":
                cells = []
                for figure in figures:
                    ratio, sd = self.ratio(row, compared, figure)
                    mark = "" if is_as_published(other, figure, ratio) else "*"
                    cells.append("" if ratio is None else f"{ratio:.2f}±{sd:.2f}{mark}")
                table.add_row(f"{row.setting}, {name(row)}", *cells)
        return table

    def _guaranteed_table(self) -> Table:
        figures = ("p99_s", "mean_s", "evictions", "lost_s", "restarts", "failed_guarantees")
        titles = (TITLES[figure] for figure in figures)
        table = _table("guaranteed all that they declare, hard rule: means of a run", "pods", *titles, "most")
        for row in self.rows:
            if row.rule == "hard" and row.guaranteed_percent:
                table.add_row(
                    f"{row.guaranteed_percent} %, {row.setting}, {name(row)}",
                    *(f"{self.mean(row, figure):.0f}" for figure in figures[:2]),
                    *(f"{self.mean(row, figure):.2f}" for figure in figures[2:]),
                    f"{self.most(row, 'evictions_most'):.0f}",
                )
        return table


def is_as_published(other: str, figure: str, ratio: float | None) -> bool | None:
    """Whether a ratio is at least the published one; None where none is published, or there is no ratio."""
    published = PUBLISHED.get(other, {}).get(figure)
    return None if published is None or ratio is None else ratio >= published


def name(row: Row) -> str:
    """Of a row, among those of one setting and rule."""
    order = ", fifo" if row.order == "first come" else ""
    return f"{row.policy}{', known' if row.profiles != 'none' else ''}{order}"


def _pace(setting: str) -> str:
    return f"a pod each {setting} s" if ARRIVALS_S[setting][1] else "all within 1 s"


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    table.add_column(first, no_wrap=True)
    for other in others:
        table.add_column(other, justify="right")
    return table


def _sd(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
