"""What filter answers with the best node alone is kept for its pod until the bind comes, and for nobody for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import NoRoom
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import DEFAULT, POLICIES
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from tests.kit.assigner.deciding import place

NODES = ["n", "m"]


def node(name: str, healthy: bool = True) -> AcceleratorNode:
    return AcceleratorNode(Inventory(name, (Device(f"GPU-{name}", "T4", 1000, healthy),)))


def pod(uid: str, percent: int = 60, on: str = "", affinity: str = "") -> SharePod:
    limits = {"edge/gpu-percent": str(percent)}
    metadata = {"namespace": "ns", "name": uid, "uid": uid, "labels": {"edge/gpu-affinity": affinity}}
    if on:
        metadata["annotations"] = {"edge/gpu-assignment": f'{{"main":["GPU-{on}"]}}'}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    return parse_pod({"metadata": metadata, "spec": {"nodeName": on, "containers": containers}})


def choosing() -> Assigner:
    """Of two nodes with a GPU each, filter answering with the best alone."""
    assigner = Assigner(POLICIES[DEFAULT], keeps_choice=True)
    assigner.nodes_listed([node(name) for name in NODES])
    return assigner


def chosen(assigner: Assigner, asking: SharePod) -> str:
    """The node that filter answers; empty where none is left."""
    return "".join(assigner.filter(asking, NODES).nodes)


def free(assigner: Assigner) -> dict[str, int]:
    """Units, by node."""
    return {each.inventory.node: each.free(each.inventory.devices[0])[0] for each in assigner.books.ledger}


def test_the_next_filter_overtakes_no_bind() -> None:
    assigner = choosing()
    first, second = chosen(assigner, pod("p")), chosen(assigner, pod("q"))
    assert {first, second} == set(NODES)
    assert chosen(assigner, pod("r")) == ""
    for uid, where in (("q", second), ("p", first)):
        assert place(assigner, pod(uid), where).node == where
    assert free(assigner) == {"n": 40, "m": 40}


def test_a_pod_that_is_filtered_again_is_promised_one_place() -> None:
    assigner = choosing()
    for _ in range(3):
        assert chosen(assigner, pod("p")) in NODES
    assert sorted(free(assigner).values()) == [40, 100]
    # And where it is turned down, none.
    assert assigner.filter(pod("p", 200), NODES).nodes == []
    assert free(assigner) == {"n": 100, "m": 100}


def test_a_promise_of_which_nobody_makes_use_lapses() -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    assigner.promises.lapse()
    late = chosen(assigner, pod("q"))
    assert {where, late} == set(NODES)
    assigner.promises.lapse()
    # That of p is over, whose pod may be deleted; that of q is not.
    assert free(assigner) == {where: 100, late: 40}
    assert place(assigner, pod("p"), where).node == where
    assigner.promises.lapse()
    assert free(assigner) == {where: 40, late: 100}


def test_who_waits_is_told_when_a_promise_has_lapsed() -> None:
    assigner = choosing()
    for uid in "pq":
        chosen(assigner, pod(uid))
    assert chosen(assigner, pod("r")) == ""
    assert assigner.fits_now() is None
    assigner.promises.lapse()
    assigner.promises.lapse()
    assert assigner.fits_now() in NODES


def test_what_kube_scheduler_binds_elsewhere_leaves_nothing_behind() -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    other = "m" if where == "n" else "n"
    assert place(assigner, pod("p"), other).node == other
    assert free(assigner) == {where: 100, other: 40}


@pytest.mark.parametrize("kind", ["ADDED", "DELETED"])
def test_a_pod_that_is_bound_or_gone_has_no_promise(kind: str) -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    assigner.pod_told(kind, pod("p", on=where))
    assert free(assigner)[where] == (40 if kind == "ADDED" else 100)


def test_a_promise_gives_way_to_who_was_bound_by_others() -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    assigner.pod_told("ADDED", pod("other", on=where))
    # 120 units are not to be had, and it is nobody's fault.
    assert (free(assigner)[where], assigner.books.overcommitted()) == (40, [])
    with pytest.raises(NoRoom):
        assigner.decide(pod("p"), where)


@pytest.mark.parametrize("by_list", [False, True])
def test_another_leader_s_bindings_end_promises(by_list: bool) -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p", 100))
    there = [pod("p", 100, on=where)]
    if by_list:
        assigner.pods_listed(there)
    else:
        assigner.pod_told("ADDED", there[0])
    assert free(assigner)[where] == 0
    assert assigner.books.overcommitted() == []


def test_a_gpu_that_fails_meanwhile_is_not_bound_to() -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    assigner.node_told("MODIFIED", node(where, healthy=False))
    with pytest.raises(NoRoom):
        assigner.decide(pod("p"), where)
    assigner.node_told("DELETED", node(where))
    assigner.promises.lapse()
    assigner.promises.lapse()
    assert where not in free(assigner)


def test_a_pod_that_asks_for_something_else_by_now_is_decided_anew() -> None:
    assigner = Assigner(POLICIES["binpack"], keeps_choice=True)
    assigner.nodes_listed([AcceleratorNode(Inventory("n", tuple(Device(f"GPU-{each}", "T4", 1000) for each in NODES)))])
    assigner.pod_told("ADDED", pod("other", on="n"))
    assigner.filter(pod("p", 40), ["n"])
    assert place(assigner, pod("p", 100), "n").assignment == '{"main":["GPU-m"]}'


def test_pods_of_an_affinity_are_promised_one_gpu() -> None:
    assigner = choosing()
    where = {chosen(assigner, pod(uid, 30, affinity="a")) for uid in "pqr"}
    assert len(where) == 1
    assert chosen(assigner, pod("s", 30, affinity="a")) == ""
    for uid in "pqr":
        assert {place(assigner, pod(uid, 30, affinity="a"), *where).node} == where


def test_filter_that_answers_with_all_promises_nothing() -> None:
    assigner = Assigner(POLICIES[DEFAULT])
    assigner.nodes_listed([node(name) for name in NODES])
    assert assigner.filter(pod("p"), NODES).nodes == NODES
    assert free(assigner) == {"n": 100, "m": 100}


Step = tuple[str, str]


@given(st.lists(st.tuples(st.sampled_from(["filter", "bind", "lapse", "gone"]), st.sampled_from("pqrs"))))
def test_whatever_comes_no_bind_finds_its_room_gone_and_no_gpu_is_given_twice(steps: list[Step]) -> None:
    assigner = choosing()
    sizes = {"p": 60, "q": 50, "r": 30, "s": 100}
    answered: dict[str, tuple[str, int]] = {}
    bound: dict[str, str] = {}
    lapsed = 0
    for step, uid in steps:
        asking = pod(uid, sizes[uid])
        if step == "filter" and uid not in bound:
            answered.pop(uid, None)
            if where := chosen(assigner, asking):
                answered[uid] = where, lapsed
        elif step == "bind" and uid in answered:
            where, since = answered.pop(uid)
            if lapsed - since < 2:
                place(assigner, asking, where)
                bound[uid] = where
        elif step == "lapse":
            assigner.promises.lapse()
            lapsed += 1
        elif step == "gone":
            assigner.pod_told("DELETED", asking)
            answered.pop(uid, None)
            bound.pop(uid, None)
        held = {name: sum(sizes[uid] for uid, at in bound.items() if at == name) for name in NODES}
        kept = {uid: at for uid, (at, since) in answered.items() if lapsed - since < 2}
        promised = {name: sum(sizes[uid] for uid, at in kept.items() if at == name) for name in NODES}
        assert free(assigner) == {name: 100 - held[name] - promised[name] for name in NODES}


def test_a_bind_to_what_was_promised_changes_no_node() -> None:
    assigner = choosing()
    where = chosen(assigner, pod("p"))
    assigner.books.ledger.take_changed()
    placed = place(assigner, pod("p"), where)
    assert assigner.books.ledger.take_changed() == []
    for kind in ("ADDED", "MODIFIED"):
        assigner.pod_told(kind, placed)
        assert assigner.books.ledger.take_changed() == []
        assert free(assigner)[where] == 40
    assigner.pod_told("DELETED", placed)
    assert free(assigner) == {"n": 100, "m": 100}
