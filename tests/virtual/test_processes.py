"""Several processes in one allocation: its share, and what is told of its GPU time, are as of one."""

from typing import Any

import pytest

from tests.kit.virtual.cases.case import Case, Client, Fault
from tests.kit.virtual.cases.oracles import WINDOW_MS, flaws
from tests.kit.virtual.cases.step_programs import burn, think, wait_each
from tests.kit.virtual.world import World

MIXES = {
    "two that never pause, and one": ((50, burn(1000), 2), (50, burn(1000), 1)),
    "four of short kernels, and one": ((30, burn(100), 4), (70, burn(1000), 1)),
    "two of 8 x 20 us, then 400 us, and one that never pauses": ((30, think(20, 8, 400), 2), (70, burn(300), 1)),
    "four of these, and one": ((50, think(20, 8, 400), 4), (50, burn(1000), 1)),
    "two, two and one": ((40, think(20, 8, 400), 2), (40, think(20, 8, 100), 2), (20, burn(1000), 1)),
    "two of 1 ms, then 500 us, and one": ((50, think(1000, 1, 500), 2), (30, think(20, 8, 100), 1)),
    "two that wait for each kernel, and one": ((50, wait_each(100), 2), (30, think(20, 8, 100), 1)),
    "two alone": ((50, think(100, 10, 1000), 2),),
}

PAUSE_TOGETHER = "four of these, and one"
"""They all begin at the begin of a turn, and so pause at the same time: they have 0.83 to 0.89 of their percent."""


def case(mix: str, **more: Any) -> Case:
    clients = tuple(Client(program=program, percent=percent, processes=count) for percent, program, count in MIXES[mix])
    return Case(clients=clients, settle_ms=3000, measure_ms=WINDOW_MS, **more)


@pytest.mark.parametrize("scheduling", ["fifo", "timeslice"])
@pytest.mark.parametrize("mix", MIXES)
def test_an_allocation_of_several_has_its_part_and_is_told_what_it_used(
    world: World, mix: str, scheduling: str
) -> None:
    found = flaws(case(mix, scheduling=scheduling), world.run)
    assert [flaw for flaw in found if mix != PAUSE_TOGETHER or flaw.kind != "beside"] == []


@pytest.mark.parametrize(
    "mix",
    [
        "four of short kernels, and one",
        "two of 8 x 20 us, then 400 us, and one that never pauses",
        "two that wait for each kernel, and one",
    ],
)
def test_where_a_switch_is_dear_as_much_is_told_as_was_used(world: World, mix: str) -> None:
    report = world.run(case(mix, scheduling="timeslice", pace="workstation"))
    assert all(abs(report.gpu_error_percent(name)) < 2 for name in report.case.names)


@pytest.mark.parametrize("process", ["c0", "c0.1"])
def test_what_is_left_of_an_allocation_has_its_share(world: World, process: str) -> None:
    """And the one that is left does not take the killed one for busy."""
    mix = "two that never pause, and one"
    report = world.run(case(mix, faults=(Fault(action="kill", process=process, at_ms=700),)))
    assert report.share_percent("c0") == pytest.approx(50, abs=0.5)
    assert abs(report.gpu_error_percent("c0")) < 2
