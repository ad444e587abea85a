"""Placement by profiles: each thing that `aware` looks at."""

from dataclasses import replace

import numpy as np

from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.profiles import Profiles
from sharemgr.cluster.state.request import Ask, Holding, Program, Request, Take
from tests.kit.assigner.profiled import BURSTY, QUICK, RUNS, SERVES, TRAINS, a_run, profiles_of


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
    assert cluster.goes(SERVES._replace(latency=False)) == "a"


def test_the_longest_kernel_of_all_who_are_there_counts() -> None:
    for one, other in ((BURSTY, TRAINS), (TRAINS, BURSTY)):
        cluster = Cluster(a="T4", b="T4").holds("a", one, 20).holds("a", other, 20).holds("b", QUICK)
        assert cluster.goes(SERVES) == "b"


def test_long_kernels_go_where_no_latency_pod_waits_for_them() -> None:
    cluster = Cluster(a="T4", b="T4").holds("a", SERVES).holds("b", SERVES._replace(latency=False))
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
