"""Placement in a running cluster."""

from pathlib import Path

import pytest

from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.replay.arrivals import arrivals, capacity_units, replay
from sharemgr.replay.openb import read_nodes, read_pods
from tests.kit.sim.cluster.generated_traces import write
from tests.kit.sim.cluster.running_cluster import allocated_percent

SEED = 42


@pytest.mark.parametrize("trace", ["few-ram", "models"])
def test_pods_of_a_running_cluster_are_placed_as_a_replay_places_them(trace: str, tmp_path: Path) -> None:
    nodes, pods = (read(path) for read, path in zip((read_nodes, read_pods), write(trace, tmp_path), strict=True))
    order = arrivals(pods, capacity_units(nodes), SEED)
    assert allocated_percent(nodes, order) == [
        moment.allocated_percent for moment in replay(nodes, order, POLICIES[DEFAULT])
    ]


def test_more_is_allocated_where_the_assigner_knows_of_cores(tmp_path: Path) -> None:
    nodes_file, pods_file = write("few-cores", tmp_path)
    nodes = read_nodes(nodes_file)
    order = arrivals(read_pods(pods_file), capacity_units(nodes), SEED)
    told, not_told = (allocated_percent(nodes, order, tells_cores)[-1] for tells_cores in (True, False))
    assert told > not_told + 2
