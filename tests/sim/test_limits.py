"""Limits over simulated time, beside others and alone, judged by what the programs executed."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from tests.kit.arbiter.bound import SETTINGS, WINDOW_NS, bound_percent, turn_ns
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import Loop, Saturating, constant


@pytest.mark.parametrize("kernel_ns", [100 * US, 1 * MS, 10 * MS])
def test_limits_hold_beside_idle_time(kernel_ns: int) -> None:
    simulation = Simulation()
    for name, request_percent, limit_percent in (("a", 25, 25), ("b", 25, 25), ("idle", 50, 100)):
        simulation.add(name, request_percent, limit_percent)
    for name in ("a", "b"):
        simulation.start(Saturating(simulation, name, 1, kernel=kernel_ns))
    simulation.run(30 * S)
    # A turn more or less at each end of the window; before the first 2 s are over the burst is used up.
    bound = 100 * turn_ns(kernel_ns) / WINDOW_NS
    assert simulation.worst_error_percent({"a": 25, "b": 25}, of_wall=True) <= bound


@pytest.mark.parametrize("kernel_ns", [100 * US, 1 * MS, 10 * MS])
def test_a_limit_holds_for_one_alone_from_the_first_moment_on(kernel_ns: int) -> None:
    simulation = Simulation()
    simulation.add("a", 20, 30)
    simulation.start(Saturating(simulation, "a", 1, kernel=kernel_ns))
    simulation.run(30 * S)
    most_ns = 0.3 * (WINDOW_NS + SETTINGS.limit_burst_ns) + turn_ns(kernel_ns)
    for begin_ns in range(0, 20 * S, 100 * MS):
        assert simulation.executed_ns("a", begin_ns, begin_ns + WINDOW_NS) <= most_ns
    assert simulation.executed_ns("a", 2 * S, 30 * S) >= 0.3 * 28 * S - turn_ns(kernel_ns)


def test_the_limit_of_a_loop_counts_what_it_executes_and_not_what_it_holds() -> None:
    simulation = Simulation()
    simulation.add("a", 20, 25)
    simulation.start(Loop(simulation, "a", 1, kernel=constant(100 * US), think=constant(30 * US), idle_ns=300 * US))
    simulation.run(20 * S)
    assert simulation.worst_error_percent({"a": 25}, of_wall=True) <= 0.1


def test_lent_time_stops_at_the_limit_of_the_borrower() -> None:
    simulation = Simulation()
    for name, request_percent, limit_percent in (("a", 30, 40), ("b", 20, 100), ("idle", 50, 100)):
        simulation.add(name, request_percent, limit_percent)
    for name in ("a", "b"):
        simulation.start(Saturating(simulation, name, 1, kernel=MS))
    simulation.run(30 * S)
    assert simulation.worst_error_percent({"a": 40}, of_wall=True) <= bound_percent(MS)
    assert simulation.busy_percent() >= 99.0
