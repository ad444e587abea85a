"""``python -m tests.kit.virtual.figures.record``: records every figure, and which random cases fall short."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import track

from tests.kit.virtual.cases.explore import owed
from tests.kit.virtual.cases.oracles import MORE_GPU_TIME, flaws
from tests.kit.virtual.cases.random_case import VARIANTS, random_case
from tests.kit.virtual.command import Command
from tests.kit.virtual.figures.figures import FIGURES, SEEDS, measured
from tests.kit.virtual.figures.ratchet import record, record_shortfalls, record_told_too_much
from tests.kit.virtual.worlds import Worlds

CASES, VARIED = 600, 60
"""Random cases of `make test`, and of those that it runs otherwise, too."""

MARGIN = 0.03
"""A case that is so close to falling short may do so where memory lies elsewhere: functions are told apart by
address."""

R = TypeVar("R")


def shown(results: Iterator[R], what: str, count: int) -> list[R]:
    """All of them, with the progress."""
    console = Console(stderr=True)
    return list(track(results, what, count, console=console, disable=not console.is_terminal))


def record_figures(worlds: Worlds) -> None:
    rows = [(name, row, seed) for name, figure in FIGURES.items() for row in figure.rows for seed in SEEDS]
    found = shown(worlds.map(lambda world, of: measured(world.run, *of), rows), "figures", len(rows))
    recorded: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in FIGURES}
    for (name, row, _), value in zip(rows, found, strict=True):
        recorded[name][row].append(value)
        if value > FIGURES[name].target:
            click.echo(f"{name}: {row}: {value:.3f}, at most {FIGURES[name].target} was wanted", err=True)
    record(recorded)


def record_cases(worlds: Worlds) -> None:
    cases = {str(number): random_case(number) for number in range(CASES)}
    for variant, case_of in VARIANTS.items():
        cases |= {f"{number}, {variant}": case_of(number) for number in range(VARIED)}
    found = shown(worlds.map(lambda world, case: flaws(case, world.run, MARGIN), cases.values()), "cases", len(cases))
    record_shortfalls({name: {flaw.kind for flaw in owed(each)} for name, each in zip(cases, found, strict=True)})
    record_told_too_much(sum(any(flaw.kind == MORE_GPU_TIME for flaw in each) for each in found[:CASES]))


@click.command(cls=Command)
def main() -> None:
    """Records the figures, and which random cases fall short."""
    worlds = Worlds()
    record_figures(worlds)
    record_cases(worlds)
    worlds.close()


if __name__ == "__main__":
    main()
