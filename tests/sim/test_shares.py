"""Shares, limits and waits over simulated time, judged by what the programs executed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.settings import Settings
from tests.kit.sim.device.device_simulator import Simulation
from tests.kit.sim.device.programs import (
    MESSAGE_NS,
    Bursts,
    Loop,
    Program,
    Saturating,
    Times,
    constant,
    exponential,
    mixed,
)

SETTINGS = Settings()
WINDOW_NS = 10 * S
MORE = pytest.mark.soak
LOOPS = [(100 * US, 30 * US), pytest.param(100 * US, 50 * US, marks=MORE), (1 * MS, 50 * US), (1 * MS, 150 * US)]


def turn_ns(kernel_ns: int) -> int:
    """q of the rule: what a turn costs at most."""
    longest_ns = SETTINGS.queue_cap_ns + kernel_ns + SETTINGS.anticipation_ns + 2 * MESSAGE_NS
    return SETTINGS.slice_ns + longest_ns


def bound_percent(kernel_ns: int) -> float:
    """The rule's bound on the error of a share over a window, in points."""
    return 100 * 2 * turn_ns(kernel_ns) / WINDOW_NS


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


def expected(requests: list[int]) -> dict[str, float]:
    return {f"a{index}": 100 * request / sum(requests) for index, request in enumerate(requests)}


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


def test_lent_time_stops_at_the_limit_of_the_borrower() -> None:
    simulation = Simulation()
    for name, request_percent, limit_percent in (("a", 30, 40), ("b", 20, 100), ("idle", 50, 100)):
        simulation.add(name, request_percent, limit_percent)
    for name in ("a", "b"):
        simulation.start(Saturating(simulation, name, 1, kernel=MS))
    simulation.run(30 * S)
    assert simulation.worst_error_percent({"a": 40}, of_wall=True) <= bound_percent(MS)
    assert simulation.busy_percent() >= 99.0


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


@pytest.mark.parametrize("requests", [pytest.param([50, 50], marks=MORE), [70, 30], [60, 30, 10]])
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
