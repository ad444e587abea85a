"""The rule of the gates on a simulated device: what programs that think get, beside others and beside liars."""

from collections.abc import Callable
from pathlib import Path

import gate_figures
import pytest
from gate_figures import LONG, SHORT, Figures, by_gates, by_turns, hold
from mixes import CASES, MIXES, PART
from simulated_device import Simulator


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    return Simulator(Path(tmp_path_factory.mktemp("device")))


GROUPS: dict[str, Callable[[Simulator], Figures]] = {
    "cases": gate_figures.cases,
    "part of the grid": lambda simulator: gate_figures.grid(gate_figures.rows(simulator, PART, SHORT)),
    "switches": gate_figures.switches,
    "limits": gate_figures.limits,
    "lies": gate_figures.lies,
}


@pytest.mark.parametrize("group", GROUPS)
def test_no_figure_is_worse_than_when_it_was_recorded(group: str, simulator: Simulator) -> None:
    hold(group, GROUPS[group](simulator))


@pytest.mark.timeout(3600)
def test_no_figure_of_the_whole_grid_is_worse_than_when_it_was_recorded(
    simulator: Simulator, pytestconfig: pytest.Config
) -> None:
    if not pytestconfig.getoption("soak"):
        pytest.skip("1,176 mixes take minutes: run with --soak")
    hold("whole grid", gate_figures.grid(gate_figures.rows(simulator, MIXES, LONG)))


def test_exclusive_turns_miss_what_the_gates_reach(simulator: Simulator) -> None:
    turns = gate_figures.cases(simulator, by_turns)
    for case in CASES:
        assert not all(each.met for name, each in turns.items() if name.startswith(case))
    gates, bare = (
        gate_figures.rows(simulator, PART[:30], SHORT),
        gate_figures.rows(simulator, PART[:30], SHORT, by_turns),
    )
    assert sum(row.met for row in gates) > sum(row.met for row in bare)


def test_the_same_seed_gives_the_same_run(simulator: Simulator) -> None:
    tenants = PART[0].tenants
    one, two = (simulator.run(tenants, SHORT, by_gates(tenants, SHORT)) for _ in range(2))
    assert one == two
