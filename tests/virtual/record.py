"""``python tests/virtual/record.py``: records every figure, and which random cases fall short, for the ratchet."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[2]))

import click
from explore import owed
from figures import FIGURES, worst
from oracles import flaws
from random_case import random_case
from ratchet import record, record_shortfalls
from rich.console import Console
from rich.progress import track
from world import World, build_libraries

CASES = 600
"""Random cases of `make test`."""

MARGIN = 0.03
"""A case that is so close to falling short may do so where memory lies elsewhere: functions are told apart by
address."""

T = TypeVar("T")
R = TypeVar("R")


class Worlds:
    """As many as there are processors."""

    def __init__(self, folder: Path) -> None:
        libraries = build_libraries(folder)
        self._free = [World(libraries) for _ in range(os.cpu_count() or 1)]

    def map(self, what: str, one: Callable[[World, T], R], all_of: Sequence[T]) -> list[R]:
        """In order, with the progress."""

        def in_world(of: T) -> R:
            world = self._free.pop()
            try:
                return one(world, of)
            finally:
                self._free.append(world)

        with ThreadPoolExecutor(len(self._free)) as pool:
            console = Console(stderr=True)
            results = pool.map(in_world, all_of)
            return list(track(results, what, len(all_of), console=console, disable=not console.is_terminal))

    def close(self) -> None:
        for world in self._free:
            world.close()


def record_figures(worlds: Worlds) -> None:
    rows = [(name, row) for name, figure in FIGURES.items() for row in figure.rows]
    found = worlds.map("figures", lambda world, of: worst(world.run, *of), rows)
    recorded: dict[str, dict[str, float]] = {name: {} for name in FIGURES}
    for (name, row), value in zip(rows, found, strict=True):
        recorded[name][row] = value
        if value > FIGURES[name].target:
            click.echo(f"{name}: {row}: {value:.3f}, at most {FIGURES[name].target} was wanted", err=True)
    record(recorded)


def record_cases(worlds: Worlds) -> None:
    numbers = range(CASES)
    found = worlds.map("cases", lambda world, n: owed(flaws(random_case(n), world.run, MARGIN)), numbers)
    record_shortfalls({number: {flaw.kind for flaw in of_one} for number, of_one in zip(numbers, found, strict=True)})


@click.command()
def main() -> None:
    """Records the figures, and which random cases fall short."""
    with tempfile.TemporaryDirectory() as folder:
        worlds = Worlds(Path(folder))
        record_figures(worlds)
        record_cases(worlds)
        worlds.close()


main()
