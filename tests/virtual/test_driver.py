"""How the simulated driver divides a GPU by itself, with neither hook nor manager: exactly, on the virtual clock."""

from itertools import pairwise

import pytest

from tests.kit.virtual.cases import step_programs
from tests.kit.virtual.cases.case import Case, Client, Program
from tests.kit.virtual.cases.report import Report
from tests.kit.virtual.world import World

TURN_NS = 2_000_000
"""As in simgpu/machine/engine/engine.h."""


def bare(world: World, scheduling: str, first: Program, second: Program) -> Report:
    """Two programs on one GPU for a second."""
    clients = tuple(Client(program=program, percent=50) for program in (first, second))
    return world.run(
        Case(clients=clients, scheduling=scheduling, hooked=False, measure_ms=1000, intervals=True)  # type: ignore[arg-type]
    )


def test_fifo_shares_by_what_is_queued(world: World) -> None:
    report = bare(world, "fifo", step_programs.wait_each(1000), step_programs.wait_each(4000))
    # Each has its next one queued while the other's runs: they take turns, kernel by kernel.
    assert all(before.name != after.name for before, after in pairwise(report.intervals))
    assert {(each.name, each.end_ns - each.begin_ns) for each in report.intervals} == {
        ("c0", 1_000_000),
        ("c1", 4_000_000),
    }
    assert report.share_percent("c0") == pytest.approx(20, abs=0.5)
    assert report.used_percent > 99.9


def test_timeslice_shares_equally_whatever_the_kernels(world: World) -> None:
    report = bare(world, "timeslice", step_programs.burn(100), step_programs.burn(50_000))
    assert report.share_percent("c0") == pytest.approx(50, abs=0.5)
    assert max(each.end_ns - each.begin_ns for each in report.intervals) == TURN_NS
    assert report.used_percent > 99.9
