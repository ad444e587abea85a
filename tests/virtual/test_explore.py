"""Random programs, alone and beside rivals, each against the same one bare."""

import pytest
from explore import owed, seeds
from oracles import flaws
from random_case import random_case
from ratchet import shortfalls
from world import World

CHUNK = 10
KNOWN = shortfalls()
"""What falls short today: each case may lose a flaw, none may get one."""

QUICK, USUAL, SOAK = 60, 600, 10_000
"""Cases of `make check`, `make test` and `make soak`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        most = SOAK if metafunc.config.getoption("soak") else USUAL
        metafunc.parametrize(
            "first",
            [pytest.param(n, marks=() if n < QUICK else pytest.mark.whole) for n in range(0, most, CHUNK)],
        )


def test_no_random_program_falls_short(world: World, first: int) -> None:
    for number in range(first, first + CHUNK):
        case = random_case(number)
        found = [flaw for flaw in owed(flaws(case, world.run)) if flaw.kind not in KNOWN.get(number, ())]
        assert not found, f"python tests/virtual/explore.py --shrink --replay '{case.line()}'"


@pytest.mark.parametrize("number", range(len(seeds())))
def test_what_failed_once_does_so_no_more(world: World, number: int) -> None:
    case = seeds()[number]
    assert not owed(flaws(case, world.run)), f"python tests/virtual/explore.py --replay '{case.line()}'"
