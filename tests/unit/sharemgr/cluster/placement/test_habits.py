"""What profiles say, whatever that is: `aware` is `usable` where nothing is known, and nonsense costs nobody room."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharemgr.cluster.placement.neighbours import Habits
from sharemgr.cluster.placement.placing import rank
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.profiles import Profile, Profiles, Run
from sharemgr.cluster.state.request import Ask, Holding, Program, Request, Take
from tests.kit.assigner.profiled import MODELS, RUNS, SERVES, TRAINS, a_run, profiles_of

PROGRAMS = st.builds(Program, st.sampled_from(["", *RUNS]), st.booleans())
PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 60), PROGRAMS), max_size=12)
ASKS = st.one_of(
    st.integers(1, 99).map(lambda units: Ask(1, units)), st.integers(1, 3).map(lambda devices: Ask(devices, 100))
)
REQUESTS = st.builds(
    lambda asks, cpu_milli, models, program: Request(tuple(asks), cpu_milli, models=models, program=program),
    st.lists(ASKS, max_size=2),
    st.integers(0, 3000),
    st.frozensets(st.sampled_from(MODELS)),
    PROGRAMS,
)


def filled(parts: Sequence[tuple[int, int, int, Program]]) -> Ledger:
    """Four nodes of three GPUs, two models; what does not fit is left out."""
    ledger = Ledger()
    for node in range(4):
        gpus = tuple(Device(f"n{node}-{gpu}", MODELS[node % 2], 0) for gpu in range(3))
        ledger.set_inventory(Inventory(f"n{node}", gpus, 9000, 9000))
    used: dict[str, int] = {}
    for number, (node, gpu, units, program) in enumerate(parts):
        device_id = f"n{node}-{gpu}"
        if used.get(device_id, 0) + units <= 100:
            used[device_id] = used.get(device_id, 0) + units
            ledger.see(Holding(str(number), f"n{node}", (Take(device_id, units, 0),), program=program))
    return ledger


def scores(ledger: Ledger, profiles: Profiles | None, request: Request, policy: str) -> tuple[list[int], list[float]]:
    table, shapes = Table(profiles), Shapes()
    table.update(ledger)
    shapes.see(request)
    ranking = rank(ledger, table, request, POLICIES[policy], shapes.demand(table))
    return ranking.rows.tolist(), ranking.scores.tolist()


@given(PARTS, REQUESTS, st.sampled_from([None, Profiles(), profiles_of({"another": RUNS["trains"]})]))
@example([(0, 0, 60, SERVES), (0, 0, 40, TRAINS)], Request((Ask(1, 60),), program=SERVES), Profiles())
def test_where_nothing_is_known_it_scores_exactly_as_usable(
    parts: list[tuple[int, int, int, Program]], request_: Request, profiles: Profiles | None
) -> None:
    # Taking a node's changes in marks them as taken in: so a ledger for each.
    aware = scores(filled(parts), profiles, request_, "aware")
    assert aware == scores(filled(parts), None, request_, "usable")


HUGE = st.sampled_from([0.0, 1e-300, 1.0, 1e9, 1e308])
PERCENTS = st.sampled_from([0.0, 1e-300, 50.0, 100.0])
ABSURD = st.builds(
    a_run, gpu_percent=PERCENTS, waited_percent=PERCENTS, kernel_p50_us=HUGE, kernel_longest_us=HUGE, think_us=HUGE
)


@given(PARTS, REQUESTS, st.dictionaries(st.sampled_from(list(RUNS)), ABSURD))
@example(
    [(0, gpu, 9, TRAINS) for gpu in range(3)],
    Request((Ask(1, 9),), program=SERVES),
    {"trains": a_run(kernel_longest_us=1e308)},
)
def test_absurd_profiles_cost_no_room_and_no_more_than_a_gpu_for_each_who_waits(
    parts: list[tuple[int, int, int, Program]], request_: Request, runs: dict[str, Run]
) -> None:
    rows, aware = scores(filled(parts), profiles_of(runs), request_, "aware")
    if len(request_.asks) <= 1:
        usable_rows, usable = scores(filled(parts), None, request_, "usable")
        assert rows == usable_rows
        most = 100 + 100 * (1 + len(parts)) + request_.units
        assert all(0 <= of_usable - of_aware <= most for of_aware, of_usable in zip(aware, usable, strict=True))
    assert np.isfinite(aware).all()


@given(st.lists(st.floats(), min_size=4, max_size=4))
def test_whatever_a_profile_says_habits_are_numbers_that_can_be(numbers: list[float]) -> None:
    gpu_percent, waited_percent, p50_us, longest_us = numbers
    profile = replace(
        Profile.of((RUNS["quick"],)),
        gpu_percent=gpu_percent,
        waited_percent=waited_percent,
        kernel_p50_us=p50_us,
        kernel_longest_us=longest_us,
    )
    habits = Habits.of(profile)
    assert 0 <= habits.demand_units <= 100
    assert all(math.isfinite(us) and us >= 0 for us in (habits.kernel_us, habits.longest_kernel_us))


@pytest.mark.parametrize(
    ("gpu_percent", "waited_percent", "demand_units"),
    [(100, 0, 100), (20, 0, 20), (40, 60, 100), (20, 50, 40), (0, 100, 0)],
)
def test_who_was_kept_waiting_would_have_used_more(
    gpu_percent: float, waited_percent: float, demand_units: float
) -> None:
    profile = Profile.of((a_run(gpu_percent=gpu_percent, waited_percent=waited_percent),))
    assert Habits.of(profile).demand_units == pytest.approx(demand_units)
