"""Shares, limits, waits, hand-overs and told GPU time, on the virtual clock: each within its target and, as the runs
are exact, no worse than it was."""

from collections.abc import Iterator

import pytest
from figures import FIGURES, SEEDS, measured
from ratchet import allowed
from world import World


def rows(seeds: tuple[int, ...]) -> Iterator[object]:
    """Each figure's rows; `make check` takes those of one pace and one scheduling, and a limit of each program."""
    for name, figure in FIGURES.items():
        for row in figure.rows:
            quick = (
                row.endswith("plain") and "timeslice" not in row and ("limit" not in name or row.startswith("limit 30"))
            )
            for seed in seeds:
                marks = () if quick else pytest.mark.whole
                yield pytest.param(name, row, seed, marks=marks, id=f"{name}: {row}, {seed}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One seed, and with --soak all of them."""
    seeds = SEEDS if metafunc.config.getoption("soak") else SEEDS[:1]
    metafunc.parametrize(("name", "row", "seed"), list(rows(seeds)))


def test_it_is_within_its_target_and_no_worse_than_recorded(world: World, name: str, row: str, seed: int) -> None:
    assert measured(world.run, name, row, seed) <= allowed(name, row, seed, FIGURES[name].target)
