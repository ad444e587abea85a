"""Where a pod goes: each policy's choice among nodes and GPUs, and what the choice hands over."""

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.placement.placing import choose
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.shapes import Shapes
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Holding, Request, Take


class Cluster:
    """A ledger and all that chooses from it."""

    def __init__(self, **gpus: Sequence[Device]) -> None:
        self.ledger, self.table, self.shapes = Ledger(), Table(), Shapes()
        for name, of_node in gpus.items():
            self.ledger.set_inventory(Inventory(name, tuple(of_node)))

    def cores(self, **cpu_milli: int) -> "Cluster":
        for name, milli in cpu_milli.items():
            node = self.ledger.node(name)
            assert node is not None
            self.ledger.set_inventory(Inventory(name, node.inventory.devices, milli, 10**6))
        return self

    def holds(self, node: str, units: Mapping[str, int]) -> "Cluster":
        """Somebody has units of these GPUs."""
        self.ledger.see(Holding(f"on {units}", node, tuple(Take(gpu, of, 0) for gpu, of in units.items())))
        return self

    def saw(self, *requests: tuple[int, Request]) -> "Cluster":
        for times, request in requests:
            for _ in range(times):
                self.shapes.see(request)
        return self

    def choose(self, request: Request, policy: str = "usable") -> tuple[str, list[str]] | None:
        self.table.update(self.ledger)
        holding = choose(self.ledger, self.table, "pod", request, POLICIES[policy], self.shapes.demand(self.table))
        return holding and (holding.node, [take.device_id for take in holding.takes])


def gpus(name: str, count: int, model: str = "T4", memory_mib: int = 0) -> list[Device]:
    return [Device(f"{name}{place}", model, memory_mib) for place in range(count)]


def part(units: int, cpu_milli: int = 0, **others: frozenset[str]) -> Request:
    return Request((Ask(1, units),), cpu_milli, **others)


def whole(devices: int, cpu_milli: int = 0) -> Request:
    return Request((Ask(devices, 100),), cpu_milli)


def used() -> Cluster:
    """One GPU is idle, others have 60, 50 and 30 units left."""
    cluster = Cluster(a=gpus("a", 2), b=gpus("b", 2))
    return cluster.holds("a", {"a0": 40, "a1": 50}).holds("b", {"b1": 70})


def test_binpack_takes_the_gpu_with_the_least_left_that_fits() -> None:
    assert used().choose(part(20), "binpack") == ("b", ["b1"])
    assert used().choose(part(40), "binpack") == ("a", ["a1"])
    assert used().choose(part(55), "binpack") == ("a", ["a0"])
    assert used().choose(part(80), "binpack") == ("b", ["b0"])
    assert used().choose(whole(1), "binpack") == ("b", ["b0"])


def test_spread_takes_the_gpu_with_the_most_left() -> None:
    assert used().choose(part(20), "spread") == ("b", ["b0"])
    cluster = used().holds("b", {"b0": 100})
    assert cluster.choose(part(20), "spread") == ("a", ["a0"])


def test_of_equal_gpus_binpack_takes_the_fuller_node_and_spread_the_emptier() -> None:
    cluster = Cluster(a=gpus("a", 2), b=gpus("b", 2)).holds("b", {"b0": 30})
    assert cluster.choose(whole(1), "binpack") == ("b", ["b1"])
    assert cluster.choose(whole(1), "spread") == ("a", ["a0"])


@pytest.mark.parametrize("policy", ["fgd", "usable"])
def test_what_comes_is_kept_a_place(policy: str) -> None:
    # Pods of 50 come: 30 units go to the GPU where no 50 are left anyway.
    cluster = used().saw((9, part(50)), (1, part(30)))
    assert cluster.choose(part(30), policy) == ("b", ["b1"])
    # Pods of 60 come: 20 units go where 50 are left, not where 60 are.
    cluster = used().holds("b", {"b1": 30}).saw((9, part(60)), (1, part(20)))
    assert cluster.choose(part(20), policy) == ("a", ["a1"])


@pytest.mark.parametrize("policy", ["fgd", "usable"])
def test_of_equals_the_node_with_the_fewest_idle_gpus_is_taken(policy: str) -> None:
    cluster = Cluster(a=gpus("a", 4), b=gpus("b", 2)).saw((1, part(50)))
    assert cluster.choose(part(50), policy) == ("b", ["b0"])


def test_whole_nodes_are_kept_for_pods_of_several_gpus() -> None:
    cluster = Cluster(a=gpus("a", 8), b=gpus("b", 8)).holds("b", {f"b{place}": 100 for place in range(4)})
    cluster.saw((50, whole(1)), (1, whole(8)))
    assert cluster.choose(whole(1)) == ("b", ["b4"])
    assert cluster.choose(whole(8)) == ("a", [f"a{place}" for place in range(8)])


def test_what_little_is_left_for_a_rare_shape_is_kept_where_fgd_spends_it() -> None:
    # Most of the cluster is of another model, and pods of eight GPUs have one node left.
    others = {f"c{number}": gpus(f"c{number}-", 1, "A100") for number in range(40)}
    cluster = Cluster(a=gpus("a", 8), b=gpus("b", 1), **others).holds("b", {"b0": 30})
    cluster.saw((65, part(70)), (34, part(30)), (1, whole(8)))
    small = part(30, models=frozenset({"T4"}))
    assert cluster.choose(small, "fgd") == ("a", ["a0"])
    assert cluster.choose(small, "usable") == ("b", ["b0"])


def test_a_rare_model_is_kept_for_pods_that_can_have_no_other() -> None:
    only = part(100, models=frozenset({"A100"}))
    cluster = Cluster(a=gpus("a", 1, "A100"), b=gpus("b", 8)).saw((9, part(100)), (1, only))
    assert cluster.choose(part(100)) == ("b", ["b0"])
    assert cluster.choose(only) == ("a", ["a0"])
    assert cluster.choose(part(100, models=frozenset({"H100"}))) is None


def test_free_units_are_not_left_without_cores() -> None:
    # A pod with many cores would leave node a half a GPU and hardly a core.
    cluster = Cluster(a=gpus("a", 1), b=gpus("b", 2)).cores(a=9000, b=64000).saw((20, part(50, 4000)))
    assert cluster.choose(part(50, 8000)) == ("b", ["b0"])
    # One with few goes where cores are short.
    assert cluster.choose(part(50, 500)) == ("a", ["a0"])


def test_a_pod_without_gpus_goes_where_the_gpus_can_spare_the_cores() -> None:
    cluster = Cluster(a=gpus("a", 2), b=gpus("b", 2)).cores(a=9000, b=64000).saw((20, whole(1, 4000)))
    assert cluster.choose(Request((), 4000)) == ("b", [])
    assert cluster.choose(Request((), 65000)) is None


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_binds_as_units_do(policy: str) -> None:
    cluster = Cluster(a=gpus("a", 1, "T4", 1000), b=gpus("b", 1, "A100", 4000))
    cluster.ledger.see(Holding("p", "b", (Take("b0", 10, 3500),)))
    assert cluster.choose(Request((Ask(1, 10, 600),)), policy) == ("a", ["a0"])
    assert cluster.choose(Request((Ask(1, 20),)), policy) == ("a", ["a0"])
    assert cluster.choose(Request((Ask(1, 10, 1001),)), policy) is None


@pytest.mark.parametrize("policy", POLICIES)
def test_the_choice_hands_over_every_containers_gpus_in_order(policy: str) -> None:
    cluster = Cluster(a=gpus("a", 1, "A100", 4000), b=gpus("b", 4, "A100", 4000))
    cluster.table.update(cluster.ledger)
    request = Request((Ask(1, 30), Ask(2, 100, 3000), Ask(1, 80, 100)), 500, 60)
    holding = choose(
        cluster.ledger, cluster.table, "uid", request, POLICIES[policy], cluster.shapes.demand(cluster.table)
    )
    assert holding is not None
    assert (holding.uid, holding.node, holding.cpu_milli, holding.ram_mib) == ("uid", "b", 500, 60)
    assert [(take.units, take.memory_mib) for take in holding.takes] == [
        (30, 1200),
        (100, 3000),
        (100, 3000),
        (80, 100),
    ]
    assert len({take.device_id for take in holding.takes}) == 4
    cluster.ledger.assume(holding)


def test_on_a_node_that_somebody_chose_the_policy_chooses_the_gpu() -> None:
    cluster = used()
    cluster.table.update(cluster.ledger)
    for node, units, expected in (("a", 20, "a1"), ("a", 55, "a0"), ("b", 20, "b1"), ("a", 70, None), ("c", 1, None)):
        demand = cluster.shapes.demand(cluster.table)
        holding = choose(cluster.ledger, cluster.table, "p", part(units), POLICIES["binpack"], demand, on=node)
        assert (holding and (holding.node, holding.takes[0].device_id)) == (expected and (node, expected))


def test_containers_of_a_pod_share_a_gpu_where_that_is_all_there_is() -> None:
    cluster = Cluster(a=gpus("a", 1))
    assert cluster.choose(Request((Ask(1, 30), Ask(1, 70)))) == ("a", ["a0", "a0"])
    assert cluster.choose(Request((Ask(1, 31), Ask(1, 70)))) is None


def test_containers_that_fit_in_another_order_alone_are_placed() -> None:
    # Where 50 units go to the emptier GPU, no 40 and 20 are left beside each other.
    cluster = Cluster(a=gpus("a", 2)).holds("a", {"a0": 50, "a1": 40})
    asks = Request((Ask(1, 20), Ask(1, 50), Ask(1, 40)))
    for policy in POLICIES:
        assert cluster.choose(asks, policy) == ("a", ["a1", "a0", "a1"])
    cluster.holds("a", {"a1": 1})
    assert cluster.choose(asks) is None


def places_for_all(free: Sequence[tuple[int, int]], asks: Sequence[Ask]) -> bool:
    """By trying out all places whether asks fit GPUs with so many units and so much memory left."""
    return any(
        all(
            sum(ask.units for ask, at in zip(asks, places, strict=True) if at == gpu) <= units
            and sum(ask.memory_mib for ask, at in zip(asks, places, strict=True) if at == gpu) <= memory_mib
            for gpu, (units, memory_mib) in enumerate(free)
        )
        for places in product(range(len(free)), repeat=len(asks))
    )


TENTHS = st.integers(1, 10)


@given(
    st.lists(st.tuples(st.integers(1, 9), TENTHS), min_size=1, max_size=3),
    st.lists(st.tuples(TENTHS, TENTHS), min_size=2, max_size=4),
    st.sampled_from(sorted(POLICIES)),
)
def test_by_brute_force_containers_are_placed_wherever_they_fit(
    free: list[tuple[int, int]], asked: list[tuple[int, int]], policy: str
) -> None:
    cluster = Cluster(a=gpus("a", len(free), "T4", 1000))
    takes = [Take(f"a{gpu}", 100 - 10 * units, 1000 - 100 * mib) for gpu, (units, mib) in enumerate(free)]
    cluster.ledger.see(Holding("others", "a", tuple(takes)))
    asks = tuple(Ask(1, 10 * units, 100 * mib) for units, mib in asked)
    chosen = cluster.choose(Request(asks), policy)
    assert (chosen is not None) == places_for_all([(10 * units, 100 * mib) for units, mib in free], asks)
    if chosen is not None:
        for gpu, (units, mib) in enumerate(free):
            there = [ask for ask, device_id in zip(asks, chosen[1], strict=True) if device_id == f"a{gpu}"]
            assert sum(ask.units for ask in there) <= 10 * units
            assert sum(ask.memory_mib for ask in there) <= 100 * mib


def test_a_node_that_is_gone_or_has_no_healthy_gpu_is_never_chosen() -> None:
    cluster = Cluster(a=gpus("a", 2), b=[Device("b0", "T4", 0, healthy=False)])
    assert cluster.choose(whole(2)) == ("a", ["a0", "a1"])
    cluster.ledger.drop_node("a")
    assert cluster.choose(part(1)) is None
    cluster.ledger.set_inventory(Inventory("c", tuple(gpus("c", 3))))
    assert cluster.choose(whole(3)) == ("c", ["c0", "c1", "c2"])
    assert cluster.choose(Request(())) is not None


def test_an_empty_cluster_takes_nobody() -> None:
    assert Cluster().choose(part(1)) is None
    assert Cluster().choose(Request(())) is None
