"""What is decided for a pod, and why nothing is."""

import json

import pytest

from edgeshare.contract.errors import NoRoom, NotFound
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Inventory
from tests.kit.assigner.deciding import assigner_of, gpu, node, place, pod


def test_what_is_decided_is_written_at_the_pod_for_each_container() -> None:
    assigner = assigner_of(node("n", *(gpu(name) for name in "ghij")))
    placed, holding = assigner.decide(pod("p", "40", "200", "30"), "n")
    assert placed.node == holding.node == "n"
    written = json.loads(placed.assignment or "")
    assert [len(written[name]) for name in ("c0", "c1", "c2")] == [1, 2, 1]
    assert not {*written["c0"], *written["c2"]} & {*written["c1"]}
    assert sum(take.units for take in holding.takes) == 270
    assigner.books.ledger.assume(holding)


def test_nothing_is_decided_where_there_is_no_room_and_the_reason_is_told() -> None:
    nonsense = AcceleratorNode(Inventory("bad", ()), fault="AcceleratorNode bad: 50% nonsense")
    assigner = assigner_of(node("n", gpu("g")), nonsense)
    place(assigner, pod("a", "60"), "n")
    with pytest.raises(NoRoom, match="node n: 50 units of one GPU: gpu 0: 40 of 100 units free, 400 of 1,000 MiB"):
        assigner.decide(pod("p", "50"), "n")
    with pytest.raises(NotFound, match="there is no AcceleratorNode of that name"):
        assigner.decide(pod("p", "50"), "unknown")
    with pytest.raises(NotFound, match="50 percent nonsense"):
        assigner.decide(pod("p", "50"), "bad")
    assert assigner.filter(pod("p", "50"), ["bad"]).failed == {"bad": "AcceleratorNode bad: 50 percent nonsense"}
