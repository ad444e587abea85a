"""``python tests/virtual/record.py``: records every figure, and which random cases fall short, for the ratchet."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[2]))
sys.path += [str(Path(__file__).parents[1] / each) for each in ("", "cluster")]

import click
from explore import owed
from figures import FIGURES, SEEDS, measured
from oracles import flaws
from random_case import VARIANTS, random_case
from ratchet import record, record_shortfalls
from rich.console import Console
from rich.progress import track
from worlds import Worlds

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
    found = shown(
        worlds.map(lambda world, case: owed(flaws(case, world.run, MARGIN)), cases.values()), "cases", len(cases)
    )
    record_shortfalls({name: {flaw.kind for flaw in of_one} for name, of_one in zip(cases, found, strict=True)})


@click.command()
def main() -> None:
    """Records the figures, and which random cases fall short."""
    worlds = Worlds()
    record_figures(worlds)
    record_cases(worlds)
    worlds.close()


main()
