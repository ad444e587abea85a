"""Random programs, alone and beside rivals, each against the same one bare."""

import pytest

from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.explore import owed, seeds
from tests.kit.virtual.cases.oracles import flaws
from tests.kit.virtual.cases.random_case import VARIANTS, random_case
from tests.kit.virtual.figures.ratchet import shortfalls
from tests.kit.virtual.world import World

CHUNK = 10
KNOWN = shortfalls()
"""What falls short today: each case may lose a flaw, none may get one."""

QUICK, USUAL, SOAK = 60, 600, 10_000
"""Cases of `make check`, `make test` and `make soak`."""

VARIED = 10
"""One of so many is run otherwise, too."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" not in metafunc.fixturenames:
        return
    part = VARIED if "variant" in metafunc.fixturenames else 1
    most = (SOAK if metafunc.config.getoption("soak") else USUAL) // part
    metafunc.parametrize(
        "first",
        [pytest.param(n, marks=() if n < QUICK // part else pytest.mark.whole) for n in range(0, most, CHUNK)],
    )


def none_falls_short(world: World, cases: dict[str, Case]) -> None:
    for name, case in cases.items():
        found = [flaw for flaw in owed(flaws(case, world.run)) if flaw.kind not in KNOWN.get(name, ())]
        assert not found, f"python -m tests.kit.virtual.cases.explore --shrink --replay '{case.line()}'"


def test_no_random_program_falls_short(world: World, first: int) -> None:
    none_falls_short(world, {str(number): random_case(number) for number in range(first, first + CHUNK)})


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_random_program_falls_short_where_it_is_run_otherwise(world: World, first: int, variant: str) -> None:
    numbers = range(first, first + CHUNK)
    none_falls_short(world, {f"{number}, {variant}": VARIANTS[variant](number) for number in numbers})


@pytest.mark.parametrize("number", range(len(seeds())))
def test_what_failed_once_does_so_no_more(world: World, number: int) -> None:
    case = seeds()[number]
    assert not owed(flaws(case, world.run)), f"python -m tests.kit.virtual.cases.explore --replay '{case.line()}'"
