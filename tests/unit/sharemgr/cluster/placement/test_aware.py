"""Placement by profiles: each thing that `aware` looks at, and that it is `usable` where nothing is known."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharemgr.cluster.placement.neighbours import Habits
from sharemgr.cluster.placement.placing import choose, rank
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.profiles import Ending, Profile, Profiles, Run
from sharemgr.cluster.state.request import Ask, Holding, Program, Request, Take

MODELS = ("T4", "A100")
TRAINS, QUICK, BURSTY = Program("trains"), Program("quick"), Program("bursty")
SERVES = Program("serves", latency=True)


def a_run(**of: Any) -> Run:
    return Run(0, Ending.COMPLETED, limit_mib=1, peak_mib=0, **of)


RUNS = {
    "trains": a_run(gpu_percent=100, kernel_p50_us=20_000, kernel_longest_us=20_000),
    "quick": a_run(gpu_percent=100, kernel_p50_us=200, kernel_longest_us=200),
    "bursty": a_run(gpu_percent=20, kernel_p50_us=100, kernel_longest_us=100),
    "serves": a_run(gpu_percent=10, kernel_p50_us=500, kernel_longest_us=500),
}


def profiles_of(runs: dict[str, Run], models: Iterable[str] = MODELS) -> Profiles:
    profiles = Profiles()
    for model in models:
        for key, run in runs.items():
            profiles.learn(model, key, run, 0)
    return profiles


class Cluster:
    """Nodes of one GPU each; a node's GPU has its name."""

    def __init__(self, profiles: Profiles | None = None, **models: str) -> None:
        self.ledger, self.shapes, self.held = Ledger(), Shapes(), 0
        self.table = Table(profiles_of(RUNS) if profiles is None else profiles)
        for name, model in models.items():
            self.ledger.set_inventory(Inventory(name, (Device(name, model, 0),)))

    def holds(self, node: str, program: Program, units: int = 40) -> "Cluster":
        self.held += 1
        self.ledger.see(Holding(str(self.held), node, (Take(node, units, 0),), program=program))
        return self

    def goes(
        self, program: Program, units: int = 20, policy: str = "aware", models: frozenset[str] = frozenset()
    ) -> str:
        request = Request((Ask(1, units),), models=models, program=program)
        self.table.update(self.ledger)
        holding = choose(self.ledger, self.table, "pod", request, POLICIES[policy], self.shapes.demand(self.table))
        assert holding is not None
        return holding.node


def test_a_latency_pod_goes_where_the_neighbours_kernels_are_short() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", TRAINS).holds("b", QUICK)
    assert cluster.goes(SERVES, policy="usable") == "a"
    assert cluster.goes(SERVES) == "b"
    # One that nobody waits for may as well be beside long kernels.
    assert cluster.goes(replace(SERVES, latency=False)) == "a"


def test_the_longest_kernel_of_all_who_are_there_counts() -> None:
    for one, other in ((BURSTY, TRAINS), (TRAINS, BURSTY)):
        cluster = Cluster(a="T4", b="T4").holds("a", one, 20).holds("a", other, 20).holds("b", QUICK)
        assert cluster.goes(SERVES) == "b"


def test_long_kernels_go_where_no_latency_pod_waits_for_them() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", SERVES).holds("b", replace(SERVES, latency=False))
    assert cluster.goes(TRAINS, policy="usable") == "a"
    assert cluster.goes(TRAINS) == "b"
    # Where it waits for as long already, it loses nothing by them.
    light = profiles_of({**RUNS, "trains": a_run(gpu_percent=10, kernel_longest_us=20_000)})
    cluster = Cluster(light, a="T4", b="T4").holds("a", SERVES).holds("b", SERVES, 20).holds("b", TRAINS, 20)
    assert cluster.goes(TRAINS) == "b"


def test_programs_that_saturate_a_gpu_go_apart() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", QUICK).holds("b", BURSTY)
    assert cluster.goes(QUICK, policy="usable") == "a"
    assert cluster.goes(QUICK) == "b"
    assert Cluster(a="T4", b="T4").holds("a", QUICK).goes(QUICK) == "b"
    # What is lost already is not lost once more.
    assert Cluster(a="T4", b="T4").holds("a", QUICK, 20).holds("a", QUICK, 20).holds("b", QUICK).goes(QUICK) == "a"


def test_bursty_programs_go_together() -> None:
    cluster = Cluster(a="T4", b="T4", c="T4").holds("a", QUICK).holds("b", BURSTY)
    assert cluster.goes(BURSTY, policy="usable") == "a"
    assert cluster.goes(BURSTY) == "b"
    # What they use adds up: five of 20 % leave no time for a sixth.
    for _ in range(4):
        cluster.holds("b", BURSTY, 5)
    assert cluster.goes(BURSTY) == "c"


def test_who_has_no_profile_uses_what_it_asks_for() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", Program("new"), 60).holds("b", BURSTY, 60)
    assert cluster.goes(QUICK, 40) == "b"


def test_of_the_models_named_the_one_is_taken_on_which_kernels_are_shortest() -> None:
    profiles = profiles_of({"bursty": RUNS["bursty"]}, ["T4"])
    profiles.learn("A100", "bursty", replace(RUNS["bursty"], kernel_p50_us=40), 0)
    profiles.learn("H100", "bursty", replace(RUNS["bursty"], kernel_p50_us=20), 0)
    cluster = Cluster(profiles, a="T4", b="A100", c="H100")
    named = frozenset({"T4", "A100"})
    assert cluster.goes(BURSTY, policy="usable", models=named) == "a"
    assert cluster.goes(BURSTY, models=named) == "b"
    assert cluster.goes(BURSTY) == "c"
    # Where the best has no room, the next.
    cluster.holds("b", Program(), 90)
    assert cluster.goes(BURSTY, models=named) == "a"


def test_a_model_that_it_may_not_have_is_not_the_best() -> None:
    profiles = Profiles()
    for model, kernel_p50_us in (("T4", 100), ("A100", 40), ("H100", 20)):
        profiles.learn(model, "bursty", replace(RUNS["bursty"], kernel_p50_us=kernel_p50_us), 0)
    profiles.learn("A100", "busy", a_run(gpu_percent=88), 0)
    cluster = Cluster(profiles)
    cluster.ledger.set_inventory(Inventory("n", (Device("a", "T4", 0), Device("b", "A100", 0), Device("c", "H100", 0))))
    cluster.ledger.see(Holding("busy", "n", (Take("b", 40, 0),), program=Program("busy")))
    cluster.table.update(cluster.ledger)
    request = Request((Ask(1, 20),), models=frozenset({"T4", "A100"}), program=BURSTY)
    demand = cluster.shapes.demand(cluster.table)
    holding = choose(cluster.ledger, cluster.table, "pod", request, POLICIES["aware"], demand)
    # On the T4 it would not need 12 of its 20 units, and on the A100 8 are lost by crowding. (Of the H100: 16, and 18.)
    assert holding is not None
    assert holding.takes == (Take("b", 20, 0),)


def test_a_better_model_is_not_taken_at_the_price_of_a_worse_neighbour() -> None:
    profiles = profiles_of(RUNS)
    profiles.learn("A100", "faster", replace(RUNS["quick"], kernel_p50_us=150), 0)
    profiles.learn("T4", "faster", RUNS["quick"], 0)
    cluster = Cluster(profiles, a="T4", b="A100")
    assert cluster.goes(Program("faster")) == "b"
    cluster.holds("b", QUICK)
    assert cluster.goes(Program("faster")) == "a"


def test_a_model_on_which_nobody_has_run_it_is_as_good_as_the_best() -> None:
    profiles = Profiles()
    profiles.learn("A100", "quick", RUNS["quick"], 0)
    assert Cluster(profiles, a="T4", b="A100").goes(QUICK) == "a"


def test_who_leaves_is_nobodys_neighbour() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", Program(), 10).holds("b", Program(), 10)
    cluster.ledger.see(Holding("trains", "a", (Take("a", 40, 0),), program=TRAINS))
    cluster.ledger.see(Holding("quick", "b", (Take("b", 40, 0),), program=QUICK))
    assert cluster.goes(SERVES) == "b"
    cluster.ledger.release("trains")
    cluster.ledger.see(Holding("bursty", "a", (Take("a", 40, 0),), program=BURSTY))
    assert cluster.goes(SERVES) == "a"
    node = cluster.ledger.node("a")
    assert node is not None
    assert dict(node.use["a"].programs) == {(BURSTY, 40): 1}
    cluster.ledger.drop_node("b")
    cluster.ledger.release("quick")
    cluster.table.update(cluster.ledger)
    assert cluster.table.neighbours is not None
    assert cluster.table.neighbours.demand_units.sum() == 10 + 20


def test_what_a_node_lists_of_a_pod_that_is_over_is_still_its_program() -> None:
    cluster = Cluster(a="T4", b="T4").holds("b", QUICK)
    cluster.ledger.see(Holding("trains", "a", (Take("a", 40, 0),), program=TRAINS))
    cluster.ledger.list_holdings("a", [Holding("trains", "a", (Take("a", 40, 0),))])
    cluster.ledger.release("trains")
    assert cluster.goes(SERVES) == "b"


def test_nodes_that_differ_in_neighbours_alone_are_of_one_kind_only_without_profiles() -> None:
    for profiles, kinds in ((profiles_of(RUNS), 2), (None, 1)):
        cluster = Cluster(a="T4", b="T4", c="T4").holds("a", TRAINS).holds("b", QUICK).holds("c", QUICK)
        table = Table(profiles)
        table.update(cluster.ledger)
        assert len(table.distinct(np.arange(3))) == kinds


def test_asks_of_whole_gpus_of_several_containers_and_of_none_are_placed() -> None:
    cluster = Cluster(a="T4", b="A100").holds("a", TRAINS)
    cluster.table.update(cluster.ledger)
    for asks, takes in (
        ((Ask(1, 100),), ["b"]),
        ((Ask(1, 50), Ask(1, 100)), None),
        ((Ask(1, 40), Ask(1, 60)), ["b", "b"]),
    ):
        chosen = choose(
            cluster.ledger,
            cluster.table,
            "pod",
            Request(asks, program=QUICK),
            POLICIES["aware"],
            cluster.shapes.demand(cluster.table),
        )
        assert (chosen and [take.device_id for take in chosen.takes]) == takes
        assert chosen is None or chosen.program == QUICK
    demand = cluster.shapes.demand(cluster.table)
    assert choose(cluster.ledger, cluster.table, "pod", Request(()), POLICIES["aware"], demand) is not None


PROGRAMS = st.builds(Program, st.sampled_from(["", *RUNS]), st.booleans())
PARTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 60), PROGRAMS), max_size=12)
ASKS = st.one_of(st.builds(Ask, st.just(1), st.integers(1, 99)), st.builds(Ask, st.integers(1, 3), st.just(100)))
REQUESTS = st.builds(
    Request,
    st.lists(ASKS, max_size=2).map(tuple),
    cpu_milli=st.integers(0, 3000),
    models=st.frozensets(st.sampled_from(MODELS)),
    program=PROGRAMS,
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
