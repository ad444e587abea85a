"""Which nodes filter lets through and what it says of the others: prioritize and decide agree, and it reads only."""

import json
import random
from contextlib import suppress

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom
from sharemgr.cluster.extender import assigner as module
from sharemgr.cluster.placement import reasons
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Inventory
from sharemgr.cluster.state.request import Take
from tests.kit.assigner.deciding import assigner_of, gpu, many, node, place, pod


def test_a_node_passes_where_one_gpu_has_room_and_not_where_only_the_sum_has() -> None:
    assigner = assigner_of(node("n", gpu("g"), gpu("h")), node("m", gpu("i")))
    for uid, name in (("a", "g"), ("b", "h")):
        assigner.pod_told("ADDED", pod(uid, "60", on="n", assignment=json.dumps({"c0": [name]})))
    found = assigner.filter(pod("p", "50"), ["n", "m", "unknown"])
    assert found.nodes == ["m"]
    assert found.never == {}
    assert found.failed == {
        "n": "50 units of one GPU: gpu 0: 40 of 100 units free, 400 of 1,000 MiB free, "
        "gpu 1: 40 of 100 units free, 400 of 1,000 MiB free",
        "unknown": reasons.no_devices(gpu("g").kind),
    }
    assert assigner.filter(pod("q", "40"), ["n"]).nodes == ["n"]


def test_the_order_of_the_nodes_is_kept_and_none_is_lost() -> None:
    names, assigner = many(9)
    place(assigner, pod("a", "100"), "n004")
    found = assigner.filter(pod("p", "10"), names[::-1])
    assert found.nodes == [name for name in names[::-1] if name != "n004"]
    assert set(found.failed) == {"n004"}


def test_filter_and_prioritize_only_read() -> None:
    _, assigner = many(1)
    for number in range(5):
        asking = pod(f"p{number}", "100")
        assert assigner.filter(asking, ["n000"]).nodes == ["n000"]
        assert assigner.prioritize(asking, ["n000"]) == {"n000": 10}


def test_a_fault_is_told_of_every_node_as_nothing_that_a_release_could_change() -> None:
    _, assigner = many(2)
    found = assigner.filter(pod("p", "50%"), ["n000", "n001"])
    assert (found.nodes, found.failed, set(found.never)) == ([], {}, {"n000", "n001"})
    assert found.never["n000"] == "container c0: edge/gpu-percent is '50 percent': expected a whole number"
    with pytest.raises(InvalidRequest, match="edge/gpu-percent"):
        assigner.decide(pod("p", "50%"), "n000")
    assert assigner.waits() == []


def test_the_choice_is_kept_where_filter_answers_with_the_best_alone() -> None:
    scores = assigner_of(node("n", gpu("g")), node("m", gpu("h")), policy="binpack")
    keeps = assigner_of(node("n", gpu("g")), node("m", gpu("h")), policy="binpack", keeps_choice=True)
    for assigner in (scores, keeps):
        place(assigner, pod("a", "30"), "m")
    assert scores.filter(pod("p", "50"), ["n", "m", "o"]).nodes == ["n", "m"]
    found = keeps.filter(pod("p", "50"), ["n", "m", "o"])
    # Why the others are left out nobody asks.
    assert (found.nodes, found.failed, found.never) == (["m"], {}, {})
    found = keeps.filter(pod("q", "200"), ["n", "o"])
    assert (found.nodes, found.failed["o"]) == ([], reasons.no_devices(gpu("g").kind))
    assert "n" in found.failed


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 10))])
def test_what_is_found_for_kinds_of_nodes_and_kept_for_bind_is_what_all_nodes_and_a_new_choice_give(
    policy: str, seed: int
) -> None:
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(12)]
    nodes = [node(name, *(gpu(f"{name}-{place}") for place in range(rng.randint(1, 3)))) for name in names]
    assigner = assigner_of(*nodes, policy=policy, keeps_choice=True)
    for number in range(80):
        asking = pod(f"p{number}", *rng.choices(["10", "30", "70", "100", "200"], k=rng.choice([1, 1, 1, 2])))
        some = rng.sample(names, 8)
        found = assigner.filter(asking, some).nodes
        if number % 2:
            assigner.forget(asking.uid)
            ranks = assigner.prioritize(asking, some)
            assert [name for name in some if ranks[name] == 10] == found
        elif found:
            with suppress(NoRoom):
                if rng.random() < 0.5:
                    place(assigner, pod(f"o{number}", "10"), rng.choice([found[0], names[0]]))
                kept = assigner.decide(asking, found[0])
                assigner.forget(asking.uid)
                assert kept == assigner.decide(asking, found[0])
                assigner.books.ledger.assume(kept[1])


def test_a_node_that_tells_nonsense_with_pods_on_it_says_so() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    place(assigner, pod("a", "60"), "n")
    assigner.node_told("MODIFIED", AcceleratorNode(Inventory("n", ()), fault="nonsense"))
    assert assigner.filter(pod("p", "1"), ["n"]).failed == {"n": "nonsense"}
    assigner.node_told("MODIFIED", node("n", gpu("g")))
    assert assigner.filter(pod("p", "40"), ["n"]).nodes == ["n"]
    assert assigner.filter(pod("q", "41"), ["n"]).nodes == []


def test_a_pod_whose_binding_is_in_doubt_can_go_nowhere_else() -> None:
    assigner = assigner_of(node("n", gpu("g")), node("m", gpu("h")))
    placed = place(assigner, pod("p", "100"), "n")
    found = assigner.filter(pod("p", "100"), ["m", "n"])
    assert found.nodes == ["n"]
    assert found.failed == {"m": "pod d/p is being bound to node n"}
    assert assigner.filter(pod("p", "100"), ["m"]).nodes == []
    with pytest.raises(AlreadyExists):
        assigner.books.ledger.assume(assigner.books.holding(placed))


def test_reasons_follow_what_is_told() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    place(assigner, pod("a", "60"), "n")
    before = assigner.filter(pod("p", "50"), ["n"]).failed["n"]
    assert assigner.filter(pod("p", "50"), ["n"]).failed["n"] == before
    place(assigner, pod("b", "10"), "n")
    assert "gpu 0: 30 of 100 units free, 300 of 1,000 MiB free" in assigner.filter(pod("p", "50"), ["n"]).failed["n"]
    assigner.node_told("DELETED", node("n"))
    assert assigner.filter(pod("p", "50"), ["n"]).failed["n"].partition(": ")[2] == reasons.no_devices(gpu("g").kind)


def test_of_many_nodes_the_first_are_told_in_full() -> None:
    names, assigner = many(module.TOLD_IN_FULL + 2)
    failed = assigner.filter(pod("p", "200"), names).failed
    assert list(failed) == names
    assert failed[names[0]].startswith("2 whole GPUs: gpu 0: 100 of 100 units free")
    assert failed[names[-1]] == "2 whole GPUs: no GPU has as much free"


def test_what_a_node_still_lists_for_nobody_is_taken() -> None:
    lingering = Listed("a", "old", (Take("g", 70, 100),))
    assigner = assigner_of(node("n", gpu("g"), allocations=[lingering]))
    assert assigner.filter(pod("p", "40"), ["n"]).nodes == []
    assigner.node_told("MODIFIED", node("n", gpu("g")))
    assert assigner.filter(pod("p", "40"), ["n"]).nodes == ["n"]


def test_a_gpu_that_is_not_healthy_holds_nothing_new() -> None:
    assigner = assigner_of(node("n", gpu("g", healthy=False), gpu("h")))
    assert json.loads(place(assigner, pod("p", "10"), "n").assignment or "") == {"c0": ["h"]}
    assert "gpu 0: not healthy" in assigner.filter(pod("q", "100"), ["n"]).failed["n"]
