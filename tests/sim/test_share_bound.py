"""Shares and waits over simulated time, judged by what the programs executed."""

from collections.abc import Callable, Mapping

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from tests.kit.arbiter.bound import WINDOW_NS, bound_percent, expected, turn_ns
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import Bursts, Loop, Program, Saturating, Times, exponential, mixed

MORE = pytest.mark.soak


def saturated(
    requests: list[int],
    kernels: list[Times | int],
    *,
    seconds: int = 30,
    seed: int = 1,
    foretells: bool = False,
) -> Simulation:
    simulation = Simulation(seed=seed)
    for index, request_percent in enumerate(requests):
        simulation.add(f"a{index}", request_percent)
    for index, kernel in enumerate(kernels):
        simulation.start(Saturating(simulation, f"a{index}", 1, kernel=kernel, foretells=foretells))
    simulation.run(seconds * S)
    return simulation


@pytest.mark.parametrize("kernel_ns", [100 * US, 1 * MS, 10 * MS])
@pytest.mark.parametrize(
    "requests",
    [[50, 50], [70, 30], [60, 30, 10], [25] * 4, [36] + [1] * 64],
    ids=["50-50", "70-30", "60-30-10", "4x25", "36+64x1"],
)
def test_saturating_programs_get_their_shares_within_the_bound(requests: list[int], kernel_ns: int) -> None:
    simulation = saturated(requests, [kernel_ns] * len(requests))
    assert simulation.worst_error_percent(expected(requests)) <= bound_percent(kernel_ns)
    assert simulation.busy_percent() >= 99.5


@pytest.mark.parametrize("requests", [[50, 50], [70, 30], [30, 70]])
@pytest.mark.parametrize(
    ("kernels", "longest_ns"),
    [
        ([100 * US, 10 * MS], 10 * MS),
        ([mixed(20 * US, 5 * MS, 5), mixed(20 * US, 5 * MS, 5)], 5 * MS),
        ([exponential(MS), 10 * MS], 10 * MS),
    ],
    ids=["0.1 beside 10 ms", "95% 20 us + 5% 5 ms", "exponential beside 10 ms"],
)
def test_uneven_kernels_do_not_move_the_shares(
    requests: list[int], kernels: list[Times | int], longest_ns: int
) -> None:
    simulation = saturated(requests, kernels)
    assert simulation.worst_error_percent(expected(requests)) <= bound_percent(longest_ns)
    assert simulation.busy_percent() >= 99.5


@pytest.mark.parametrize("kernel_ns", [100 * US, 1 * MS])
@pytest.mark.parametrize("requests", [[50, 50], [70, 30], [60, 30, 10]])
def test_foretold_drains_shorten_the_hand_over_and_leave_the_shares_alone(requests: list[int], kernel_ns: int) -> None:
    bare = saturated(requests, [kernel_ns] * len(requests))
    foretold = saturated(requests, [kernel_ns] * len(requests), foretells=True)
    assert foretold.worst_error_percent(expected(requests)) <= bound_percent(kernel_ns)
    assert 100 - foretold.busy_percent() < 0.7 * (100 - bare.busy_percent())


def test_what_one_leaves_is_lent_in_proportion_to_the_requests_and_given_back() -> None:
    simulation = Simulation()
    pauses = {"a": [(10 * S, 20 * S)], "b": [], "c": []}
    for name, request_percent in (("a", 50), ("b", 30), ("c", 20)):
        simulation.add(name, request_percent)
    for name, away in pauses.items():
        simulation.start(Saturating(simulation, name, 1, kernel=MS, pauses=away))
    simulation.run(30 * S)
    bound = 100 * 2 * turn_ns(MS) / (8 * S)
    for begin_ns, shares in ((2 * S, [50, 30, 20]), (12 * S, [0, 60, 40]), (22 * S, [50, 30, 20])):
        executed_ns = [simulation.executed_ns(name, begin_ns, begin_ns + 8 * S) for name in "abc"]
        got = [100 * each / sum(executed_ns) for each in executed_ns]
        assert got == pytest.approx(shares, abs=bound)
        assert sum(executed_ns) >= 0.995 * 8 * S


@pytest.mark.parametrize(
    ("requests", "watched"), [([50, 50], 0), ([50, 25, 25], 0), ([36] + [1] * 64, 1), ([99, 1], 1)]
)
def test_nobody_waits_longer_than_the_bound_allows(requests: list[int], watched: int) -> None:
    simulation = saturated(requests, [MS] * len(requests))
    longest_ns = simulation.arbiter.account(f"a{watched}", simulation.now_ns).longest_wait_ns
    # From the least lag to the most, at the rate at which it grows while it waits.
    assert longest_ns <= 2 * turn_ns(MS) * sum(requests) / requests[watched]


def test_a_program_that_dies_while_it_holds_costs_its_neighbour_nothing() -> None:
    simulation = Simulation()
    for name in ("dies", "stays"):
        simulation.add(name, 50)
    simulation.start(Saturating(simulation, "stays", 1, kernel=MS))
    for client_id in range(1, 100):
        program = Saturating(simulation, "dies", client_id, kernel=10 * MS)
        simulation.start(program)
        while not program.number:
            simulation.run(simulation.now_ns + MS)
        simulation.kill(program)
        simulation.run(simulation.now_ns + 1)
        assert simulation.arbiter.account("stays", simulation.now_ns).waiting_ns == 0


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=MORE) for seed in (3, 4, 5))])
def test_one_that_is_always_busy_gets_its_request_whoever_comes_and_goes(seed: int) -> None:
    simulation = Simulation(seed=seed)
    for name, request_percent, limit_percent in (("busy", 40, 100), ("b", 30, 100), ("c", 20, 25), ("d", 10, 100)):
        simulation.add(name, request_percent, limit_percent)
    simulation.start(Saturating(simulation, "busy", 1, kernel=MS))
    rng = Program(simulation, "d", 0).random
    kinds: list[Callable[[str, int], Program]] = [
        lambda name, client_id: Saturating(simulation, name, client_id, kernel=exponential(2 * MS)),
        lambda name, client_id: Loop(
            simulation,
            name,
            client_id,
            kernel=exponential(MS),
            think=exponential(rng.choice((50 * US, 500 * US, 20 * MS))),
            idle_ns=rng.choice((0, 300 * US)),
        ),
        lambda name, client_id: Bursts(
            simulation, name, client_id, kernel_ns=MS, kernels=5, period_ns=rng.randint(10, 60) * MS
        ),
    ]
    living: list[Program] = []
    for client_id in range(2, 400):
        simulation.run(simulation.now_ns + rng.randint(1, 150) * MS)
        if living and rng.random() < 0.5:
            simulation.kill(living.pop(rng.randrange(len(living))))
        else:
            program = rng.choice(kinds)(rng.choice("bcd"), client_id)
            simulation.start(program)
            living.append(program)
        if len(living) > 8:
            simulation.kill(living.pop(0))
    last_ns = simulation.now_ns // WINDOW_NS * WINDOW_NS
    assert last_ns >= 2 * WINDOW_NS
    for begin_ns in range(2 * S, last_ns - WINDOW_NS, 100 * MS):
        executed_ns = simulation.executed_ns("busy", begin_ns, begin_ns + WINDOW_NS)
        # Hand-overs are nobody's share; whoever leaves in debt or credit moves the rest by his part of it.
        assert executed_ns >= 0.4 * 0.98 * WINDOW_NS - 2 * turn_ns(20 * MS)


def test_64_small_clients_keep_their_shares_for_minutes(counts: Mapping[str, int]) -> None:
    requests = [36] + [1] * 64
    simulation = saturated(requests, [MS] * len(requests), seconds=60 * counts["minutes"])
    assert simulation.worst_error_percent(expected(requests)) <= bound_percent(MS)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [saturated([70, 30], [exponential(MS)] * 2, seconds=5, seed=seed) for seed in (7, 7, 8)]
    executed_ns = [run.executed_ns("a0", 0, 5 * S) for run in runs]
    assert executed_ns[0] == executed_ns[1] != executed_ns[2]
