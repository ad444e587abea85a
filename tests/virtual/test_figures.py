"""Shares, limits, waits, hand-overs and told GPU time, on the virtual clock: each within its target and, as the runs
are exact, no worse than it was."""

from collections.abc import Iterator

import pytest
from figures import FIGURES, worst
from ratchet import allowed
from world import World


def rows() -> Iterator[object]:
    """Each figure's rows; `make check` takes those of one pace and one scheduling, and a limit of each program."""
    for name, figure in FIGURES.items():
        for row in figure.rows:
            quick = (
                row.endswith("plain") and "timeslice" not in row and ("limit" not in name or row.startswith("limit 30"))
            )
            yield pytest.param(name, row, marks=() if quick else pytest.mark.whole, id=f"{name}: {row}")


@pytest.mark.parametrize(("name", "row"), list(rows()))
def test_it_is_within_its_target_and_no_worse_than_recorded(world: World, name: str, row: str) -> None:
    value = worst(world.run, name, row)
    assert value <= allowed(name, row, FIGURES[name].target)
