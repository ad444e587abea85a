"""What a recorded figure lets pass, and what it does not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeshare.contract.errors import NotFound
from tests.kit.virtual.figures import ratchet
from tests.kit.virtual.figures.figures import FIGURES
from tests.kit.virtual.figures.ratchet import LEAST, allowed, record, recorded

TARGET = 0.5


@pytest.fixture
def most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], float]:
    """How large a figure may be of which this was recorded."""
    monkeypatch.setattr(ratchet, "FILE", tmp_path / "recorded.json")

    def most(value: float) -> float:
        record({"a figure": {"a row": [0, value]}})
        return allowed("a figure", "a row", 2, TARGET)

    return most


@pytest.mark.parametrize("value", [0.002, 0.3, 0.6, 20])
def test_a_figure_may_be_worse_by_a_tenth_and_no_more(most: Callable[[float], float], value: float) -> None:
    assert most(value) == pytest.approx(1.1 * value)


def test_a_figure_that_met_its_target_has_to_go_on_meeting_it(most: Callable[[float], float]) -> None:
    assert most(0.48) == TARGET


def test_what_is_as_good_as_nothing_may_be_so_still(most: Callable[[float], float]) -> None:
    assert most(0) == most(LEAST) == pytest.approx(1.1 * LEAST)


def test_each_recorded_value_that_doubles_is_refused_but_those_that_are_as_good_as_nothing() -> None:
    values = [
        (value, allowed(name, row, seed, FIGURES[name].target))
        for name, rows in recorded().items()
        for row, of_seeds in rows.items()
        for seed, value in enumerate(of_seeds, 1)
    ]
    assert all(most < 2 * value for value, most in values if value > 0.55 * LEAST)
    assert sum(value > 0.55 * LEAST for value, _ in values) > 0.85 * sum(value > 0 for value, _ in values)


def test_a_row_that_was_never_recorded_is_refused_with_what_to_do(most: Callable[[float], float]) -> None:
    most(1)
    with pytest.raises(NotFound, match="'another row': run python"):
        allowed("a figure", "another row", 1, TARGET)
