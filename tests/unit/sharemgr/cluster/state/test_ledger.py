"""The assigner's ledger: what pods hold, and when it is free again."""

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound, Unavailable
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Holding, Take

A, B = Device("gpu-a", "T4", 1000), Device("gpu-b", "T4", 1000)


def ledger_of(*gpus: Device, cpu_milli: int | None = None, ram_mib: int | None = None) -> Ledger:
    ledger = Ledger()
    ledger.set_inventory(Inventory("n", gpus, cpu_milli, ram_mib))
    return ledger


def holding(uid: str, units: int, memory_mib: int, gpu: Device = A, **others: int) -> Holding:
    return Holding(uid, "n", (Take(gpu.id, units, memory_mib),), **others)


def free(ledger: Ledger, gpu: Device = A) -> tuple[int, int]:
    node = ledger.node("n")
    assert node is not None
    return node.free(gpu)


def test_what_is_assumed_is_taken_and_what_is_released_is_free_again() -> None:
    ledger = ledger_of(A, B)
    ledger.assume(holding("p", 40, 300))
    assert free(ledger) == (60, 700)
    assert free(ledger, B) == (100, 1000)
    assert ledger.is_assumed("p")
    ledger.release("p")
    assert free(ledger) == (100, 1000)
    assert ledger.bound("p") is None
    ledger.release("p")
    assert free(ledger) == (100, 1000)


def test_what_fills_a_gpu_is_assumed_and_one_unit_or_mib_more_is_not() -> None:
    ledger = ledger_of(A)
    ledger.assume(holding("p", 40, 400))
    for units, memory_mib in ((61, 1), (1, 601)):
        with pytest.raises(NoRoom, match=r"60 of 100 units and 600 of 1000 MiB free"):
            ledger.assume(holding("q", units, memory_mib))
    ledger.assume(holding("q", 60, 600))
    assert free(ledger) == (0, 0)


def test_who_takes_no_memory_is_not_kept_off_by_memory_that_others_have_too_much_of() -> None:
    small = Device("gpu-a", "T4", 0)
    ledger = ledger_of(small)
    ledger.see(holding("p", 40, 300))
    ledger.assume(holding("q", 60, 0))
    assert free(ledger, small) == (0, -300)
    ledger.release("q")
    with pytest.raises(NoRoom):
        ledger.assume(holding("q", 60, 1))


def test_two_containers_of_a_pod_on_one_gpu_count_together() -> None:
    ledger = ledger_of(A)
    with pytest.raises(NoRoom):
        ledger.assume(Holding("p", "n", (Take(A.id, 60, 1), Take(A.id, 60, 1))))
    assert free(ledger) == (100, 1000)
    ledger.assume(Holding("p", "n", (Take(A.id, 60, 1), Take(A.id, 40, 1))))
    assert free(ledger) == (0, 998)


def test_what_pods_hold_of_cores_and_ram_is_counted_and_refused_by_others() -> None:
    ledger = ledger_of(A, cpu_milli=1000, ram_mib=500)
    ledger.assume(holding("p", 1, 1, cpu_milli=900, ram_mib=100))
    # kube-scheduler has let it through.
    ledger.see(holding("q", 1, 1, cpu_milli=200, ram_mib=500))
    node = ledger.node("n")
    assert node is not None
    assert (node.cpu_free_milli, node.ram_free_mib) == (-100, -100)
    ledger.release("p")
    assert (node.cpu_free_milli, node.ram_free_mib) == (800, 0)
    ledger.set_inventory(Inventory("n", (A,)))
    assert (node.cpu_free_milli, node.ram_free_mib) == (None, None)


def test_a_gpu_that_is_not_there_or_not_healthy_is_not_assumed() -> None:
    ledger = ledger_of(Device("sick", "T4", 1000, healthy=False))
    with pytest.raises(NotFound, match="gpu-a is not on node n"):
        ledger.assume(holding("p", 1, 1))
    with pytest.raises(Unavailable, match="sick of node n is not healthy"):
        ledger.assume(Holding("p", "n", (Take("sick", 1, 1),)))
    with pytest.raises(NotFound, match="node m"):
        ledger.assume(Holding("p", "m", (Take("gpu-a", 1, 1),)))


def test_a_pod_is_assumed_once() -> None:
    ledger = ledger_of(A)
    ledger.assume(holding("p", 10, 10))
    with pytest.raises(AlreadyExists, match="bound to n already"):
        ledger.assume(holding("p", 10, 10))
    ledger.list_holdings("n", [holding("q", 10, 10)])
    with pytest.raises(AlreadyExists, match="allocation on node n"):
        ledger.assume(holding("q", 10, 10))


def test_a_binding_that_is_seen_replaces_what_was_assumed() -> None:
    ledger = ledger_of(A, B)
    ledger.assume(holding("p", 40, 300))
    ledger.see(holding("p", 40, 300))
    assert not ledger.is_assumed("p")
    assert free(ledger) == (60, 700)
    ledger.see(holding("p", 50, 300, B))
    assert free(ledger) == (100, 1000)
    assert free(ledger, B) == (50, 700)


def test_what_the_api_server_says_is_taken_in_even_where_it_over_commits() -> None:
    ledger = ledger_of(A)
    ledger.see(holding("p", 80, 1))
    assert ledger.overcommitted() == []
    ledger.see(holding("q", 80, 1))
    assert free(ledger) == (-60, 998)
    assert [(node, device.id) for node, device in ledger.overcommitted()] == [("n", "gpu-a")]
    ledger.release("q")
    assert ledger.overcommitted() == []


def test_a_pod_that_is_over_holds_what_its_node_lists_until_that_lets_go() -> None:
    ledger = ledger_of(A)
    ledger.see(holding("p", 40, 300))
    ledger.list_holdings("n", [holding("p", 40, 300)])
    assert free(ledger) == (60, 700)
    ledger.release("p")
    assert free(ledger) == (60, 700)
    ledger.list_holdings("n", [])
    assert free(ledger) == (100, 1000)


def test_an_allocation_of_a_pod_that_is_not_known_counts_and_once_the_pod_is_seen_not_twice() -> None:
    ledger = ledger_of(A)
    ledger.list_holdings("n", [holding("p", 40, 300)])
    assert free(ledger) == (60, 700)
    ledger.see(holding("p", 40, 300))
    assert free(ledger) == (60, 700)
    ledger.list_holdings("n", [])
    assert free(ledger) == (60, 700)


def test_a_gpu_that_vanishes_is_as_full_when_it_is_back() -> None:
    ledger = ledger_of(A, B)
    ledger.see(holding("p", 40, 300))
    ledger.set_inventory(Inventory("n", (B,)))
    with pytest.raises(NotFound):
        ledger.assume(holding("q", 10, 10))
    ledger.set_inventory(Inventory("n", (A, B)))
    assert free(ledger) == (60, 700)


def test_pods_may_be_seen_before_their_node_and_outlive_it() -> None:
    ledger = Ledger()
    ledger.see(holding("p", 40, 300))
    ledger.set_inventory(Inventory("n", (A,)))
    assert free(ledger) == (60, 700)
    ledger.drop_node("n")
    assert free(ledger) == (60, 700)
    ledger.release("p")
    assert ledger.node("n") is None
    assert list(ledger) == []


def test_a_node_that_is_gone_takes_with_it_what_it_listed() -> None:
    ledger = ledger_of(A)
    ledger.list_holdings("n", [holding("p", 40, 300)])
    ledger.drop_node("n")
    assert ledger.node("n") is None
    ledger.drop_node("n")


def test_changed_nodes_are_told_once() -> None:
    ledger = ledger_of(A)
    assert ledger.take_changed() == ["n"]
    assert ledger.take_changed() == []
    ledger.assume(holding("p", 40, 300))
    ledger.release("p")
    assert ledger.take_changed() == ["n"]
    ledger.drop_node("n")
    assert ledger.take_changed() == ["n"]


def test_less_than_nothing_and_another_nodes_pods_are_refused() -> None:
    ledger = ledger_of(A)
    for wrong in (holding("p", 0, 1), holding("p", 1, -1), holding("p", 1, 1, cpu_milli=-1)):
        with pytest.raises(InvalidRequest, match="less than nothing"):
            ledger.assume(wrong)
        with pytest.raises(InvalidRequest, match="less than nothing"):
            ledger.see(wrong)
        with pytest.raises(InvalidRequest, match="less than nothing"):
            ledger.list_holdings("n", [wrong])
    with pytest.raises(InvalidRequest, match="lists a pod of node n"):
        ledger.list_holdings("m", [holding("p", 1, 1)])
    assert free(ledger) == (100, 1000)


def test_what_a_node_tells_again_or_lists_of_bound_pods_is_no_change() -> None:
    ledger = ledger_of(A, B)
    ledger.assume(holding("p", 40, 300))
    ledger.take_changed()
    ledger.set_inventory(Inventory("n", (A, B)))
    ledger.list_holdings("n", [holding("p", 40, 300)])
    assert ledger.take_changed() == []
    ledger.list_holdings("n", [holding("p", 40, 300), holding("q", 10, 100, B)])
    assert (ledger.take_changed(), free(ledger, B)) == (["n"], (90, 900))
    ledger.list_holdings("n", [holding("p", 40, 300)])
    assert (ledger.take_changed(), free(ledger, B)) == (["n"], (100, 1000))
    ledger.drop_node("n")
    assert (ledger.take_changed(), free(ledger)[0]) == (["n"], 60)


def test_a_pod_that_is_assumed_to_hold_what_was_set_aside_for_it_changes_nothing() -> None:
    ledger = ledger_of(A, B)
    aside = holding("p", 60, 600)
    ledger.set_aside(aside)
    ledger.take_changed()
    ledger.assume(holding("p", 60, 600))
    assert (ledger.take_changed(), free(ledger)) == ([], (40, 400))
    ledger.give_back(aside)
    assert free(ledger) == (40, 400)
    ledger.release("p")
    assert free(ledger) == (100, 1000)


def test_what_was_set_aside_is_given_back_where_its_pod_is_assumed_to_hold_something_else() -> None:
    ledger = ledger_of(A, B)
    aside = holding("p", 60, 600)
    ledger.set_aside(aside)
    ledger.assume(holding("p", 60, 600, B))
    ledger.give_back(aside)
    assert (free(ledger), free(ledger, B)) == ((100, 1000), (40, 400))
    ledger.set_aside(holding("q", 30, 300))
    with pytest.raises(NoRoom):
        ledger.assume(holding("q", 60, 600, B))
    assert (free(ledger), free(ledger, B)) == ((100, 1000), (40, 400))
