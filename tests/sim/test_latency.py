"""The latency class over simulated time: how soon it is served, and how much it gets."""

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from tests.kit.arbiter.bound import SETTINGS, WINDOW_NS, bound_percent
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import Bursts, Saturating


@pytest.mark.parametrize("rivals", [1, 3])
@pytest.mark.parametrize("batch_ns", [1 * MS, 10 * MS])
@pytest.mark.parametrize("period_ns", [47 * MS, 50 * MS, 53 * MS])
def test_a_latency_client_waits_for_one_batch_kernel_at_most(batch_ns: int, period_ns: int, rivals: int) -> None:
    def answers_ns(latency: bool, *, alone: bool = False) -> list[int]:
        simulation = Simulation()
        simulation.add("served", 30, 100, latency)
        served = Bursts(simulation, "served", 1, kernel_ns=MS, kernels=8, period_ns=period_ns)
        simulation.start(served)
        for index in range(0 if alone else rivals):
            simulation.add(f"batch{index}", 70 // rivals)
            simulation.start(Saturating(simulation, f"batch{index}", 1, kernel=batch_ns))
        simulation.run(30 * S)
        if not alone:
            assert simulation.busy_percent() >= 99.5
        return sorted(served.answers_ns)

    bare, ranked, plain = answers_ns(True, alone=True), answers_ns(True), answers_ns(False)
    p99 = len(ranked) * 99 // 100
    assert ranked[p99] <= bare[p99] + batch_ns + MS
    assert plain[p99] > ranked[p99]


def test_a_latency_client_gets_no_more_than_its_request_from_its_class() -> None:
    simulation = Simulation()
    simulation.add("served", 30, 100, True)
    simulation.add("batch", 70)
    for name in ("served", "batch"):
        simulation.start(Saturating(simulation, name, 1, kernel=MS))
    simulation.run(30 * S)
    budget_ns = 2 * 30 * SETTINGS.budget_period_ns // 100
    bound = bound_percent(MS) + 100 * budget_ns / WINDOW_NS
    assert simulation.worst_error_percent({"served": 30, "batch": 70}) <= bound
