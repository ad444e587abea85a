"""The rule of the gates on a simulated device: what programs that think get, beside others and beside liars."""

from pathlib import Path

import pytest

from tests.kit.sim.device import gate_figures
from tests.kit.sim.device.gate_figures import PARTS, SHORT, WHOLE, by_gates, by_turns, hold
from tests.kit.sim.device.mixes import CASES, PART
from tests.kit.sim.device.simulated_device import Simulator


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Simulator:
    return Simulator(Path(tmp_path_factory.mktemp("device")))


@pytest.mark.parametrize("group", PARTS)
def test_no_figure_is_worse_than_when_it_was_recorded(group: str, simulator: Simulator) -> None:
    hold(group, PARTS[group](simulator))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", WHOLE)
def test_no_figure_of_the_whole_grid_is_worse_than_when_it_was_recorded(group: str, simulator: Simulator) -> None:
    hold(group, WHOLE[group](simulator))


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
