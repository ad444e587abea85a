"""Loops that launch and wait, over simulated time: their shares of held time, with anticipation and without."""

from dataclasses import replace

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.settings import Settings
from tests.kit.arbiter.bound import SETTINGS, bound_percent, expected, turn_ns
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import Loop, Saturating, Times, constant

LOOPS = [
    (100 * US, 30 * US),
    pytest.param(100 * US, 50 * US, marks=pytest.mark.soak),
    (1 * MS, 50 * US),
    (1 * MS, 150 * US),
]


def worst_held_error_percent(simulation: Simulation, shares: dict[str, float], seconds: int) -> float:
    worst = 0.0
    for end_s in range(12, seconds + 1):
        simulation.run(end_s * S)
        held_ns = {name: simulation.arbiter.account(name, end_s * S).held_ns for name in shares}
        for name, share_percent in shares.items():
            worst = max(worst, abs(100 * held_ns[name] / sum(held_ns.values()) - share_percent))
    return worst


def loops(requests: list[int], settings: Settings, **program: int | Times) -> Simulation:
    simulation = Simulation(settings)
    for index, request_percent in enumerate(requests):
        simulation.add(f"a{index}", request_percent)
        simulation.start(Loop(simulation, f"a{index}", 1, **program))  # type: ignore[arg-type]
    return simulation


@pytest.mark.parametrize("requests", [pytest.param([50, 50], marks=pytest.mark.soak), [70, 30], [60, 30, 10]])
@pytest.mark.parametrize("idle_ns", [0, 300 * US], ids=["releases at once", "keeps its gate"])
@pytest.mark.parametrize(("kernel_ns", "think_ns"), LOOPS)
def test_launch_and_sync_loops_get_their_shares_of_held_time(
    requests: list[int], idle_ns: int, kernel_ns: int, think_ns: int
) -> None:
    simulation = loops(requests, SETTINGS, kernel=constant(kernel_ns), think=constant(think_ns), idle_ns=idle_ns)
    assert worst_held_error_percent(simulation, expected(requests), 13) <= bound_percent(kernel_ns)


def test_loops_miss_their_shares_without_anticipation() -> None:
    settings = replace(SETTINGS, anticipation_ns=0)
    simulation = loops([70, 30], settings, kernel=constant(100 * US), think=constant(30 * US), idle_ns=0)
    assert worst_held_error_percent(simulation, expected([70, 30]), 12) > 15


def test_a_loop_does_not_make_a_saturating_neighbour_pay_for_its_gaps() -> None:
    simulation = Simulation()
    for name in ("loop", "full"):
        simulation.add(name, 50)
    simulation.start(Loop(simulation, "loop", 1, kernel=constant(100 * US), think=constant(50 * US), idle_ns=300 * US))
    simulation.start(Saturating(simulation, "full", 1, kernel=MS))
    assert worst_held_error_percent(simulation, {"loop": 50, "full": 50}, 14) <= bound_percent(MS)
    assert simulation.executed_ns("full", 4 * S, 14 * S) >= 0.5 * 0.995 * 10 * S - turn_ns(MS)
