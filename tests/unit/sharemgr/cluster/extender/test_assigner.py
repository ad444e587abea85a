"""The assigner's decisions: what filter, prioritize and decide say agrees with each other, and reads only."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from edgeshare.contract.errors import AlreadyExists, InvalidRequest, NoRoom, NotFound
from sharemgr.cluster.extender import assigner as module
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement import placers, reasons
from sharemgr.cluster.placement.placing import rank
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.cores import Cores, Offer
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Take


def node(name: str, *gpus: Device, allocations: Sequence[Listed] = ()) -> AcceleratorNode:
    return AcceleratorNode(Inventory(name, gpus), tuple(allocations))


def gpu(name: str, memory_mib: int = 1000, model: str = "T4", healthy: bool = True) -> Device:
    return Device(name, model, memory_mib, healthy)


def pod(
    uid: str, *percents: str, models: str = "", on: str = "", assignment: str = "", cpu: str = "0", **labels: str
) -> SharePod:
    annotations = {"edge/gpu-model": models, "edge/gpu-assignment": assignment}
    metadata: dict[str, Any] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["annotations"] = {key: text for key, text in annotations.items() if text}
    metadata["labels"] = {f"edge/gpu-{key}": text for key, text in labels.items()}
    containers = [
        {"name": f"c{place}", "resources": {"limits": {"edge/gpu-percent": percent}, "requests": {"cpu": cpu}}}
        for place, percent in enumerate(percents)
    ]
    return parse_pod({"metadata": metadata, "spec": {"nodeName": on, "containers": containers}})


def assigner_of(*nodes: AcceleratorNode, policy: str = "usable", keeps_choice: bool = False) -> Assigner:
    assigner = Assigner(POLICIES[policy], keeps_choice)
    assigner.nodes_listed(nodes)
    return assigner


def place(assigner: Assigner, asking: SharePod, on: str) -> SharePod:
    placed, holding = assigner.decide(asking, on)
    assigner.books.ledger.assume(holding)
    return placed


def many(count: int) -> tuple[list[str], Assigner]:
    names = [f"n{number:03}" for number in range(count)]
    return names, assigner_of(*(node(name, gpu(f"{name}-g")) for name in names))


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


def test_the_best_alone_has_10_and_ranks_are_spread_below() -> None:
    names, assigner = many(40)
    for number, name in enumerate(names):
        place(assigner, pod(f"a{number}", str(number + 1)), name)
    asking = pod("p", "5")
    assigner.filter(asking, names)
    scores = assigner.prioritize(asking, names)
    assert list(scores) == names
    counted = [list(scores.values()).count(score) for score in range(10, 4, -1)]
    assert counted == [1, 2, 4, 8, 16, 9]


def test_equal_nodes_have_one_best_too() -> None:
    names, assigner = many(600)
    scores = assigner.prioritize(pod("p", "5"), names)
    assert sorted(scores.values())[-3:] == [9, 9, 10]
    assert set(scores.values()) == set(range(1, 11))


def test_a_node_that_cannot_hold_the_pod_has_no_score() -> None:
    names, assigner = many(3)
    place(assigner, pod("a", "100"), "n001")
    assert assigner.prioritize(pod("p", "5"), [*names, "unknown"])["n001"] == 0
    assert assigner.prioritize(pod("p", "5"), [*names, "unknown"])["unknown"] == 0


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
@pytest.mark.parametrize("seed", range(10))
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


def test_models_bind() -> None:
    assigner = assigner_of(node("n", gpu("g", model="T4")), node("m", gpu("h", model="A10")))
    found = assigner.filter(pod("p", "10", models="A10,V100"), ["n", "m"])
    assert found.nodes == ["m"]
    assert found.failed == {"n": "10 units of one GPU: gpu 0: is of model T4"}


def test_an_exclusion_keeps_others_off_and_lets_its_own_in() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    place(assigner, pod("a", "10", exclusion="x"), "n")
    assert assigner.filter(pod("p", "10"), ["n"]).failed == {
        "n": "10 units of one GPU: gpu 0: holds pods of exclusion 'x'"
    }
    assert assigner.filter(pod("q", "10", exclusion="y"), ["n"]).nodes == []
    assert assigner.filter(pod("r", "10", exclusion="x"), ["n"]).nodes == ["n"]


def test_an_exclusion_keeps_others_off_also_where_pods_of_several_were_bound_by_others() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    on_g = '{"c0":["g"]}'
    assigner.pods_listed(
        [pod("a", "10", on="n", assignment=on_g, exclusion="x"), pod("b", "9", on="n", assignment=on_g)]
    )
    assert assigner.filter(pod("p", "10"), ["n"]).failed == {
        "n": "10 units of one GPU: gpu 0: holds pods of exclusion none and 'x'"
    }
    assert assigner.filter(pod("q", "10", exclusion="x"), ["n"]).nodes == []


def test_an_affinity_brings_pods_to_one_gpu_and_nowhere_else() -> None:
    assigner = assigner_of(node("n", gpu("g"), gpu("h")), node("m", gpu("i")), policy="spread")
    first = place(assigner, pod("a", "40", affinity="x"), "n")
    second = place(assigner, pod("b", "40", affinity="x"), "n")
    assert first.assignment == second.assignment
    found = assigner.filter(pod("c", "40", affinity="x"), ["n", "m"])
    assert found.nodes == []
    assert "is not that of its affinity" in found.failed["n"]
    assert "pods of its affinity share GPU" in found.failed["m"]
    assert assigner.filter(pod("d", "40", affinity="y"), ["n", "m"]).nodes == ["n", "m"]


def test_a_pod_that_was_turned_down_waits_until_it_is_let_through() -> None:
    assigner = assigner_of(node("n", gpu("g")), node("m"))
    on_n = pod("a", "60", on="n", assignment='{"c0":["g"]}')
    assigner.pod_told("ADDED", on_n)
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == []
    assert [str(each) for each in assigner.waits()] == ["d/p"]
    assigner.pod_told("DELETED", on_n)
    assert [str(each) for each in assigner.waits()] == ["d/p"]
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == ["n"]
    assert assigner.waits() == []


def with_cores(**cpu_milli: int) -> Assigner:
    """Nodes of one GPU and so many millicores."""
    assigner = assigner_of(*(node(name, gpu(f"{name}-g")) for name in cpu_milli))
    assigner.offers_listed([Offer(name, Cores(cpu, 64_000)) for name, cpu in cpu_milli.items()])
    return assigner


def test_a_gpu_is_kept_from_pods_that_would_leave_it_without_cores() -> None:
    assigner = with_cores(few=9000, many=64_000)
    for number in range(20):
        assigner.filter(pod(f"seen{number}", "50", cpu="4"), [])
    large, small = pod("large", "50", cpu="8"), pod("small", "50", cpu="500m")
    for asking, best in ((large, "many"), (small, "few")):
        assigner.filter(asking, ["few", "many"])
        assert assigner.prioritize(asking, ["few", "many"])[best] == 10
    assigner.offer_told("DELETED", Offer("few", Cores()))
    assigner.offer_told("MODIFIED", Offer("many", Cores(9000, 64_000)))
    assigner.filter(large, ["few", "many"])
    assert assigner.prioritize(large, ["few", "many"])["few"] == 10


def test_whether_a_node_has_the_cores_is_for_kube_scheduler_to_say() -> None:
    assigner = with_cores(n=1000)
    asking = pod("p", "50", cpu="4")
    assert assigner.filter(asking, ["n"]).nodes == ["n"]
    assert place(assigner, asking, "n").node == "n"
    assert assigner.filter(pod("q", "50", cpu="4"), ["n"]).nodes == ["n"]
    again = pod("q", "50", cpu="4")
    assigner.forget("q")
    assert place(assigner, again, "n").node == "n"


def test_kube_scheduler_is_told_to_try_again_where_the_cores_are_there_too() -> None:
    assigner = with_cores(n=1000, m=8000)
    for uid, name in (("a", "n"), ("b", "m")):
        assigner.pod_told("ADDED", pod(uid, "60", on=name, assignment=json.dumps({"c0": [f"{name}-g"]})))
    assert assigner.filter(pod("p", "50", cpu="4"), ["n", "m"]).nodes == []
    assert assigner.fits_now() is None
    assigner.pod_told("DELETED", pod("a", "60", on="n"))
    assert assigner.fits_now() is None
    assigner.pod_told("DELETED", pod("b", "60", on="m"))
    assert assigner.fits_now() == "m"


def test_a_pod_that_asks_for_no_cores_needs_none_where_others_have_more_than_there_are() -> None:
    assigner = with_cores(n=1000)
    on_n = pod("a", "60", on="n", assignment='{"c0":["n-g"]}')
    assigner.pod_told("ADDED", on_n)
    assigner.pod_told("ADDED", pod("without", on="n", cpu="2"))
    assigner.pod_told("ADDED", pod("greedy", "10", on="n", cpu="2", assignment='{"c0":["n-g"]}'))
    assert assigner.filter(pod("p", "50"), ["n"]).nodes == []
    assigner.pod_told("DELETED", on_n)
    assert assigner.fits_now() == "n"


def test_a_backlog_of_equal_pods_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assigner = assigner_of(node("n", gpu("g")), node("m"))
    on_n = pod("a", "60", on="n", assignment='{"c0":["g"]}')
    assigner.pod_told("ADDED", on_n)
    for number in range(20):
        assigner.filter(pod(f"p{number}", "200" if number % 2 else "300"), ["n"])
    assert assigner.fits_now() is None
    asked: list[object] = []

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[2])
        return rank(*arguments)

    monkeypatch.setattr(placers, "rank", counting)
    assigner.pod_told("DELETED", on_n)
    assert assigner.fits_now() is None
    assert len(asked) == len(set(asked)) == 2


def test_a_pod_that_is_not_filtered_any_more_is_forgotten() -> None:
    assigner = assigner_of(node("n", gpu("g")))
    for uid in ("gone", "there"):
        assigner.filter(pod(uid, "200"), ["n"])
    assigner.forget_idle()
    assert {str(each) for each in assigner.waits()} == {"d/gone", "d/there"}
    assigner.filter(pod("there", "200"), ["n"])
    assigner.forget_idle()
    assert {str(each) for each in assigner.waits()} == {"d/there"}


@pytest.mark.parametrize("by_list", [True, False])
def test_a_pod_that_was_bound_waits_no_longer(by_list: bool) -> None:
    assigner = assigner_of(node("n", gpu("g")))
    assigner.filter(pod("p", "200"), ["n"])
    bound = pod("p", "200", on="elsewhere")
    if by_list:
        assigner.pods_listed([bound])
    else:
        assigner.pod_told("MODIFIED", bound)
    assert assigner.waits() == []
    assert assigner.asking("p") is None


def test_pods_that_ask_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASKING_MAX", 2)
    assigner = assigner_of(node("n", gpu("g")))
    for uid in ("p", "q", "p", "r"):
        assigner.filter(pod(uid, "200"), ["n"])
    assert {str(each) for each in assigner.waits()} == {"d/p", "d/r"}
    assigner.forget("p")
    assert assigner.asking("p") is None
    assert assigner.prioritize(pod("p", "50"), ["n"]) == {"n": 10}


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
