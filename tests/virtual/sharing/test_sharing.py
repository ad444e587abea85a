"""Programs that leave gaps, on the virtual clock: what each has of the GPU, and what it would have by turns."""

import pytest

from tests.kit.virtual.cases.case import Case, Client
from tests.kit.virtual.cases.step_programs import burn, think
from tests.kit.virtual.figures.thinking import MIXES
from tests.kit.virtual.world import World

WANTED = {
    "three of 8 x 20 us, then 100 us": (48, 29, 19),
    "three of 4 x 5 us, then 50 us": (22.3, 22.3, 22.3),
    "1 ms, then 500 us, and 50 us, then 50 us": (60, 14),
    "two of 4 x 100 us, then 300 us": (49, 49),
    "8 x 20 us, then 400 us, and one that never thinks": (19, 76),
    "two of 64 x 2 us, then 20 us": (39, 39),
    "two of 2 us that never wait": (43, 43),
    "2 us that never waits, and 300 us that never waits": (43, 54),
}
"""Percent of the GPU that each should have at least, in the order of its clients."""
BY_TURNS_TOO = ("1 ms, then 500 us, and 50 us, then 50 us", "two of 4 x 100 us, then 300 us")
"""Here who wakes ends another's turn soon enough."""


def used(world: World, clients: tuple[Client, ...], *, seen: bool = True) -> list[float]:
    """Percent of the GPU, from when they have been let in; where nobody sees how busy it is they take turns."""
    case = Case(clients=clients, settle_ms=3000, measure_ms=6000, scheduling="timeslice", seen=seen)
    report = world.run(case)
    return [report.busy_percent(name) for name in case.names]


@pytest.mark.parametrize("mix", WANTED)
def test_each_has_what_it_should_beside_the_others(world: World, mix: str) -> None:
    assert all(got >= least for got, least in zip(used(world, MIXES[mix]), WANTED[mix], strict=True))


@pytest.mark.parametrize("mix", [mix for mix in WANTED if mix not in BY_TURNS_TOO])
def test_by_turns_somebody_would_not(world: World, mix: str) -> None:
    assert any(got < least for got, least in zip(used(world, MIXES[mix], seen=False), WANTED[mix], strict=True))


def test_those_that_never_pause_keep_their_shares_beside_one_that_does(world: World) -> None:
    programs = ((20, think(20, 8, 400)), (50, burn(300)), (30, burn(1000)))
    _, half, rest = used(world, tuple(Client(program=program, percent=percent) for percent, program in programs))
    assert half == pytest.approx(50, abs=1)
    assert rest == pytest.approx(30, abs=1)
