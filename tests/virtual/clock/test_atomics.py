"""The hook with every atomic operation a point at which another thread may run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.oracles import flaws
from tests.kit.virtual.cases.random_case import random_case
from tests.kit.virtual.instrumented import build_instrumented
from tests.kit.virtual.world import World

pytestmark = pytest.mark.whole

SEEDS, CASES = 2, 30


@pytest.fixture(scope="module")
def instrumented(libraries: Path) -> Iterator[World]:
    world = World(libraries, hook=build_instrumented())
    yield world
    world.close()


def case(number: int) -> Case:
    """Other programs than those of the random cases that are run without; shorter, as each step takes longer."""
    shorter = {"atomics": True, "settle_ms": 200, "measure_ms": 800}
    return random_case(1_000_000 + number).model_copy(update=shorter)


@pytest.mark.parametrize("number", range(SEEDS))
def test_a_seed_says_all_that_happens_between_atomic_operations(instrumented: World, number: int) -> None:
    first, second = (instrumented.run(case(number)).figures for _ in range(2))
    assert first["hash"] == second["hash"]
    without = instrumented.run(case(number).model_copy(update={"atomics": False})).figures
    assert int(first["points"]) > int(without["points"])


@pytest.mark.parametrize("number", range(CASES))
def test_no_random_program_fails_between_atomic_operations(instrumented: World, number: int) -> None:
    # Bare there are no atomic operations of the hook's, which cost time here: rates say nothing.
    found = [flaw for flaw in flaws(case(number), instrumented.run) if flaw.kind in ("died", "error", "memory")]
    assert not found, case(number).line()
