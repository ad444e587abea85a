"""A program whose threads launch in turn, as a framework does whose backward pass has a thread of its own: it is as
fast as without the hook, and gets what it is due beside a rival."""

import pytest

from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program
from tests.kit.virtual.cases.explore import owed
from tests.kit.virtual.cases.oracles import flaws
from tests.kit.virtual.cases.paces import PACES
from tests.kit.virtual.world import World

KERNELS_US = [5] * 8

PROGRAMS = {
    "one thread": step_programs.phases(KERNELS_US, "one"),
    "two threads, kernels of their own": step_programs.phases(KERNELS_US, "own"),
    "two threads, the same kernels": step_programs.phases(KERNELS_US, "same"),
    "one after the other": step_programs.phases(KERNELS_US, "one", "own", "one", "same"),
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


@pytest.mark.parametrize("pace", PACES)
def test_alone_it_is_as_fast_as_without_the_hook(world: World, program: Program, pace: str) -> None:
    case = Case(clients=(Client(program=program, percent=60),), pace=pace)
    assert not owed(flaws(case, world.run))


@pytest.mark.parametrize("pace", PACES)
def test_beside_a_rival_it_gets_what_it_is_due(world: World, program: Program, pace: str) -> None:
    rival = Client(program=step_programs.burn(1000), percent=70)
    case = Case(clients=(Client(program=program, percent=30), rival), pace=pace)
    assert not owed(flaws(case, world.run))
