"""Shares, limits, waits, hand-overs and told GPU time, on the virtual clock: each within its target and, as the runs
are exact, no worse than it was."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from tests.kit.virtual.cases.case import Case, Client
from tests.kit.virtual.cases.made_report import made_report
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.figures.figures import FIGURES, LIMITS, SEEDS, TO_LIMIT, covering, measured
from tests.kit.virtual.figures.ratchet import allowed
from tests.kit.virtual.world import World


def rows() -> Iterator[object]:
    """Each figure's rows with each seed. `make test` takes one seed, and of a figure that is a product of three factors
    the part in which any two of their values meet; `make check` what of that is of one pace, and of a whole figure one
    scheduling."""
    for name, figure in FIGURES.items():
        for row, seed in product(figure.rows, SEEDS):
            quick = row.endswith("plain") and (row in figure.usual if figure.usual else "timeslice" not in row)
            usual = seed == SEEDS[0] and (row in figure.usual or not figure.usual)
            marks = [*([] if quick else [pytest.mark.whole]), *([] if usual else [pytest.mark.soak])]
            yield pytest.param(name, row, seed, marks=marks, id=f"{name}: {row}, {seed}")


@pytest.mark.parametrize(("name", "row", "seed"), list(rows()))
def test_it_is_within_its_target_and_no_worse_than_recorded(world: World, name: str, row: str, seed: int) -> None:
    assert measured(world.run, name, row, seed) <= allowed(name, row, seed, FIGURES[name].target)


@pytest.mark.parametrize(("used_percent", "off"), [(30, 0), (31.5, 1.5), (15, 15)])
def test_who_has_less_than_its_limit_is_as_far_off_it_as_who_has_more(used_percent: float, off: float) -> None:
    name, row = "executed off the limit, points", "limit 30, kernels of 100 us, plain"
    assert measured(lambda case: made_report(case, used_percent), name, row, SEEDS[0]) == pytest.approx(off)


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("name", TO_LIMIT)
def test_each_program_that_is_limited_can_use_more(world: World, name: str, pace: str) -> None:
    case = Case(clients=(Client(program=TO_LIMIT[name], percent=100),), hooked=False, pace=pace)
    assert world.run(case).busy_percent("c0") > max(LIMITS)


@pytest.mark.parametrize("sizes", [(3, 4, 10), (3, 16, 3), (3, 6, 2), (2, 2, 2)])
def test_any_two_values_of_different_factors_meet_in_a_covering(sizes: tuple[int, ...]) -> None:
    places = {str(place): place for place in product(*map(range, sizes))}
    part = [places[row] for row in covering(places, *sizes)]
    assert len(part) * min(sizes) == len(places)
    for one, other in combinations(range(len(sizes)), 2):
        met = {(place[one], place[other]) for place in part}
        assert met == {*product(range(sizes[one]), range(sizes[other]))}
