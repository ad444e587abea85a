"""The replay's arithmetic: who arrives, in which order, and what is read off at which percent."""

from itertools import pairwise

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Request
from sharemgr.replay.arrivals import Moment, arrivals, at_percent, capacity_units, replay

NODES = [Inventory(f"n{n}", tuple(Device(f"n{n}-{g}", "T4", 0) for g in range(4)), 32000, 64000) for n in range(5)]
PODS = [
    Request((Ask(1, units),) if units else (), cpu_milli)
    for units, cpu_milli in ((50, 2000), (30, 1000), (100, 4000), (0, 500), (70, 3000))
] * 4


def test_the_whole_trace_comes_and_then_more_of_it_up_to_130_percent() -> None:
    units = capacity_units(NODES)
    assert units == 2000
    order = arrivals(PODS, units, seed=42)
    assert sorted(map(repr, order[: len(PODS)])) == sorted(map(repr, PODS))
    assert order[: len(PODS)] != PODS
    assert set(order) <= set(PODS)
    assert 2600 - 100 < sum(pod.units for pod in order) <= 2600


def test_a_seed_is_an_order() -> None:
    assert arrivals(PODS, 2000, 42) == arrivals(PODS, 2000, 42)
    assert arrivals(PODS, 2000, 42) != arrivals(PODS, 2000, 43)


def test_of_a_trace_that_asks_for_more_only_so_much_comes() -> None:
    order = arrivals(PODS, 300, 42)
    assert len(order) < len(PODS)
    assert 390 - 100 < sum(pod.units for pod in order) <= 390


def test_pods_without_gpus_never_end_it() -> None:
    with pytest.raises(InvalidRequest, match="no pod of the trace asks for a GPU"):
        arrivals([Request((), 100)], 2000, 42)


def test_a_percent_is_the_mean_of_the_arrivals_that_round_to_it_or_else_the_last_before() -> None:
    moments = [Moment(arrived, allocated, None) for arrived, allocated in ((89.4, 1), (89.5, 2), (90.4, 4), (96, 8))]
    assert at_percent(moments) == {90: 3, 95: 4, 100: 8, 110: 8, 120: 8, 130: 8}
    assert at_percent([])[100] == 0


def test_nothing_comes_beyond_the_last_percent_that_is_asked_for() -> None:
    coming = iter([Moment(arrived, arrived, None) for arrived in (99.5, 100.4, 100.5, 101)])
    assert at_percent(coming, [90, 100]) == {90: 0, 100: pytest.approx(99.95)}
    assert next(coming).arrived_percent == 101


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_allocated_follows_what_arrives_until_it_fits_no_more(policy: str) -> None:
    order = arrivals(PODS, 2000, 42)
    moments = list(replay(NODES, order, POLICIES[policy]))
    assert len(moments) == len(order)
    assert moments[-1].arrived_percent == sum(pod.units for pod in order) / 20
    for earlier, later in pairwise(moments):
        assert earlier.allocated_percent <= later.allocated_percent <= min(100, later.arrived_percent)
    assert moments[-1].allocated_percent > 70
    told = [moment.fragmented_percent for moment in moments if moment.fragmented_percent is not None]
    assert len(told) > 35
    assert all(0 <= fragmented <= 100 for fragmented in told)
    last = next(moment for moment in reversed(moments) if moment.fragmented_percent is not None)
    assert last.fragmented_percent is not None
    assert last.fragmented_percent <= 100 - last.allocated_percent + 1e-9


def test_cores_bind_as_gpus_do() -> None:
    poor = [Inventory(node.node, node.devices, 1000, node.ram_mib) for node in NODES]
    order = arrivals(PODS, 2000, 42)
    (*_, last) = replay(poor, order, POLICIES["binpack"])
    assert last.allocated_percent <= 100 * 5 * 30 / 2000
