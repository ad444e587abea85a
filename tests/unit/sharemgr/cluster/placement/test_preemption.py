"""Which pods would have to go: found per GPU and by priority, no more than needed."""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.preemption import is_being_made_room_for, victims
from sharemgr.cluster.state.books import AcceleratorNode, Listed
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Take

G, H = Device("g", "T4", 1000), Device("h", "T4", 1000)


def pod(
    uid: str,
    *percents: str,
    gpus: Sequence[str] | None = None,
    priority: int = 0,
    on: str = "n",
    memory_mib: str = "",
    models: str = "",
    **labels: str,
) -> SharePod:
    """Bound to those GPUs, where there are any."""
    limits = {"edge/gpu-memory-mib": memory_mib} if memory_mib else {}
    containers = [
        {"name": f"c{place}", "resources": {"limits": {"edge/gpu-percent": percent, **limits}}}
        for place, percent in enumerate(percents)
    ]
    metadata: dict[str, Any] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["labels"] = {f"edge/gpu-{key}": text for key, text in labels.items()}
    metadata["annotations"] = {"edge/gpu-model": models} if models else {}
    spec = {"priority": priority, "containers": containers}
    if gpus is not None:
        metadata["annotations"]["edge/gpu-assignment"] = json.dumps({"c0": list(gpus)})
        spec["nodeName"] = on
    return parse_pod({"metadata": metadata, "spec": spec})


def assigner_of(*pods: SharePod, gpus: Sequence[Device] = (G, H), allocations: Sequence[Listed] = ()) -> Assigner:
    assigner = Assigner(POLICIES["usable"])
    assigner.nodes_listed([AcceleratorNode(Inventory("n", tuple(gpus)), tuple(allocations))])
    assigner.pods_listed(pods)
    return assigner


def find(assigner: Assigner, asking: SharePod, proposed: Collection[str] = (), on: str = "n") -> list[str] | None:
    found = victims(assigner.books, asking, on, proposed)
    return None if found is None else sorted(found)


def test_victims_leave_one_gpu_and_not_two_halves() -> None:
    assigner = assigner_of(
        pod("a", "50", gpus=["g"]), pod("b", "50", gpus=["h"]), pod("c", "30", gpus=["g"]), pod("d", "40", gpus=["h"])
    )
    found = find(assigner, pod("p", "100", priority=1), proposed=["a", "b"])
    assert found in (["a", "c"], ["b", "d"])


def test_kube_schedulers_victims_will_do_where_they_leave_a_gpu() -> None:
    assigner = assigner_of(pod("a", "70", gpus=["g"]), pod("b", "70", gpus=["h"]))
    for uid in ("a", "b"):
        assert find(assigner, pod("p", "50", priority=1), proposed=[uid]) == [uid]


def test_those_without_a_gpu_go_for_something_else_that_is_needed() -> None:
    assigner = assigner_of(pod("a", "30", gpus=["g"]), pod("b", "70", gpus=["g"]), gpus=[G])
    assert find(assigner, pod("p", "60", priority=1), proposed=["a", "cpu"]) == ["b", "cpu"]


def test_none_go_where_it_fits_and_none_where_it_would_not_help() -> None:
    assigner = assigner_of(pod("a", "50", gpus=["g"]))
    assert find(assigner, pod("p", "50", priority=1)) == []
    assert find(assigner, pod("p", "300", priority=1)) is None
    assert find(assigner, pod("p", "100", priority=1), on="unknown") is None
    assert find(assigner, pod("p", "150", priority=1), proposed=["a"]) is None


def test_those_of_equal_or_higher_priority_stay() -> None:
    assigner = assigner_of(
        pod("equal", "60", gpus=["g"], priority=5),
        pod("higher", "60", gpus=["h"], priority=9),
        pod("low", "30", gpus=["h"]),
    )
    assert find(assigner, pod("p", "50", priority=5), proposed=["equal", "higher"]) is None
    assert find(assigner, pod("p", "40", priority=5), proposed=["equal"]) == []
    assert find(assigner, pod("p", "50", priority=6)) == ["equal"]


def test_the_least_important_go_and_of_equals_the_fewest() -> None:
    important = assigner_of(pod("a", "60", gpus=["g"], priority=3), pod("b", "60", gpus=["h"], priority=2))
    assert find(important, pod("p", "50", priority=5)) == ["b"]
    fewest = assigner_of(
        *(pod(f"small{number}", "25", gpus=["g"]) for number in range(4)), pod("large", "100", gpus=["h"]), gpus=[G, H]
    )
    assert find(fewest, pod("p", "25", priority=5)) in [[f"small{number}"] for number in range(4)]


def test_memory_counts() -> None:
    assigner = assigner_of(
        pod("units", "60", gpus=["g"], memory_mib="1"), pod("mib", "1", gpus=["g"], memory_mib="900"), gpus=[G]
    )
    assert find(assigner, pod("p", "30", memory_mib="500", priority=1)) == ["mib"]
    assert find(assigner, pod("p", "70", memory_mib="50", priority=1)) == ["units"]
    assert find(assigner, pod("p", "70", memory_mib="500", priority=1)) == ["mib", "units"]


def test_models_health_and_exclusion_count() -> None:
    gpus = [G, Device("h", "A10", 1000), Device("i", "A10", 1000, healthy=False)]
    assigner = assigner_of(pod("a", "99", gpus=["g"]), pod("b", "99", gpus=["h"]), pod("c", "9", gpus=["i"]), gpus=gpus)
    assert find(assigner, pod("p", "50", priority=1, models="A10"), proposed=["a"]) == ["b"]
    assert find(assigner, pod("p", "200", priority=1, models="A10")) is None
    mixed = assigner_of(
        pod("x", "10", gpus=["g"], exclusion="x"),
        pod("y", "10", gpus=["g"], exclusion="y"),
        pod("z", "90", gpus=["h"], priority=9),
    )
    assert find(mixed, pod("p", "20", priority=1, exclusion="x")) == ["y"]
    assert find(mixed, pod("p", "20", priority=1)) == ["x", "y"]


def test_an_affinity_binds_to_the_gpu_that_its_pods_keep() -> None:
    assigner = assigner_of(
        pod("mate", "60", gpus=["g"], priority=9, affinity="x"), pod("a", "40", gpus=["g"]), pod("b", "10", gpus=["h"])
    )
    assert find(assigner, pod("p", "40", priority=1, affinity="x"), proposed=["b"]) == ["a"]
    assert find(assigner, pod("p", "41", priority=1, affinity="x")) is None
    mates = assigner_of(pod("mate", "60", gpus=["g"], affinity="x"), pod("b", "10", gpus=["h"], priority=9))
    assert find(mates, pod("p", "80", priority=1, affinity="x")) == ["mate"]
    away = assigner_of(pod("mate", "60", gpus=["g"], affinity="x"), pod("b", "30", gpus=["g"], priority=9))
    assert find(away, pod("p", "80", priority=1, affinity="x")) == ["mate"]
    elsewhere = assigner_of(pod("mate", "1", gpus=["other"], on="m", affinity="x"), pod("b", "10", gpus=["h"]))
    assert find(elsewhere, pod("p", "80", priority=1, affinity="x")) is None


def test_several_whole_gpus_are_emptied() -> None:
    gpus = [Device(name, "T4", 0) for name in "ghij"]
    assigner = assigner_of(
        pod("a", "10", gpus=["g"], priority=3),
        pod("b", "200", gpus=["h", "i"]),
        pod("c", "10", gpus=["j"], priority=9),
        gpus=gpus,
    )
    assert find(assigner, pod("p", "200", priority=5)) == ["b"]
    assert find(assigner, pod("p", "300", priority=5)) == ["a", "b"]
    assert find(assigner, pod("p", "400", priority=5)) is None


def test_a_pod_of_several_containers_has_room_made_for_all() -> None:
    assigner = assigner_of(pod("a", "60", gpus=["g"]), pod("b", "60", gpus=["h"]))
    assert find(assigner, pod("p", "40", "60", priority=1)) in (["a"], ["b"])
    assert find(assigner, pod("p", "60", "60", priority=1)) == ["a", "b"]


def test_nobody_goes_for_containers_that_fit_in_another_order() -> None:
    assigner = assigner_of(pod("a", "40", gpus=["g"]), pod("b", "50", gpus=["h"]))
    assert find(assigner, pod("p", "50", "40", "20", priority=1)) == []
    assert find(assigner, pod("p", "50", "40", "21", priority=1)) in (["a"], ["b"])


@pytest.mark.parametrize(
    ("free", "asked"),
    [
        ((64, 50), (50, 40, 4, 4, 4, 4, 4, 4)),
        ((100, 60), (60, 28, 28, 11, 11, 11, 11)),
        ((95, 85, 40, 65), (60, 40, 50, 55, 45)),
    ],
)
def test_nobody_goes_for_many_containers_that_fit_as_they_are(free: Sequence[int], asked: Sequence[int]) -> None:
    gpus = [Device(f"g{place}", "T4", 1000) for place in range(len(free))]
    there = [
        pod(f"on {gpu.id}", str(100 - units), gpus=[gpu.id])
        for gpu, units in zip(gpus, free, strict=True)
        if units < 100
    ]
    asking = pod("p", *map(str, asked), priority=1)
    assert find(assigner_of(*there, gpus=gpus), asking) == []
    assert assigner_of(*there, gpus=gpus).filter(asking, ["n"]).nodes == ["n"]


def test_room_is_being_made_where_what_is_going_is_in_the_way_and_nowhere_else() -> None:
    def is_awaited(percent: str, *listed: Listed) -> bool:
        assigner = assigner_of(allocations=listed)
        asking = pod("p", percent, priority=1)._replace(nominated="n")
        return is_being_made_room_for(assigner.books, asking)

    going = [Listed(gpu, f"gone from {gpu}", (Take(gpu, 60, 600),)) for gpu in "gh"]
    assert is_awaited("50", *going)
    assert not is_awaited("200")
    # It fits beside what is going, and is held up by something else.
    assert not is_awaited("50", going[0])
    # Whose allocation it is the node does not know yet: it may be one that has just come.
    assert not is_awaited("50", *(each._replace(pod_uid="") for each in going))


def test_a_pod_that_bypassed_the_assigner_can_be_a_victim_and_one_that_is_over_cannot() -> None:
    bypassing = assigner_of(
        parse_pod(
            {
                "metadata": {"uid": "a", "name": "a"},
                "spec": {
                    "nodeName": "n",
                    "containers": [{"name": "c", "resources": {"limits": {"edge/gpu-percent": "80"}}}],
                },
            }
        ),
        gpus=[G],
        allocations=[Listed("1", "a", (Take("g", 80, 800),))],
    )
    assert find(bypassing, pod("p", "30", priority=1)) == ["a"]
    lingering = assigner_of(gpus=[G], allocations=[Listed("1", "a", (Take("g", 80, 800),))])
    assert find(lingering, pod("p", "30", priority=1), proposed=["a"]) is None


SIZES = st.sampled_from([10, 30, 50, 60, 90, 100])
LABELS = st.sampled_from(["", "", "x"])
ASKED = st.sampled_from([(10,), (50,), (80,), (100,), (200,), (40, 60), (50, 40, 20), (100, 40, 10, 70)])
ON_NODE = st.lists(st.tuples(SIZES, st.integers(0, 2), st.integers(0, 3), LABELS, LABELS), max_size=6)


@given(
    ON_NODE,
    st.tuples(ASKED, st.integers(0, 3), LABELS, LABELS, st.sampled_from(["", "T4"])),
    st.sets(st.integers(0, 5)),
)
def test_by_brute_force_victims_are_found_where_any_will_do_and_none_of_them_is_too_many(
    on_node: list[tuple[int, int, int, str, str]], asked: tuple[tuple[int, ...], int, str, str, str], proposed: set[int]
) -> None:
    gpus = [G, H, Device("i", "A10", 0)]
    pods = {}
    for number, (percent, place, priority, affinity, exclusion) in enumerate(on_node):
        labels = _labels("" if percent == 100 else affinity, exclusion)
        uid = f"a{number}"
        pods[uid] = pod(uid, str(percent), gpus=[gpus[place].id], priority=priority, **labels)
    percents, priority, affinity, exclusion, models = asked
    labels = _labels("" if max(percents) >= 100 or sum(percents) > 100 else affinity, exclusion)
    asking = pod("p", *map(str, percents), priority=priority, models=models, **labels)

    def fits_without(gone: Collection[str]) -> bool:
        left = assigner_of(*(each for uid, each in pods.items() if uid not in gone), gpus=gpus)
        return left.filter(asking, ["n"]).nodes == ["n"]

    chosen = {f"a{number}" for number in proposed}
    found = victims(assigner_of(*pods.values(), gpus=gpus).books, asking, "n", sorted(chosen))
    lower = [uid for uid, each in pods.items() if each.priority < priority]
    will_do = any(fits_without(some) for count in range(len(lower) + 1) for some in combinations(lower, count))
    assert (found is not None) == will_do
    if found is None:
        return
    assert len(set(found)) == len(found)
    if found != sorted(chosen):
        needed = [uid for uid in found if uid in pods]
        assert set(needed) <= set(lower)
        assert fits_without(needed)
        assert not any(fits_without(set(needed) - {uid}) for uid in needed)
    else:
        assert fits_without(chosen & set(lower))


def _labels(affinity: str, exclusion: str) -> Mapping[str, str]:
    return {key: text for key, text in (("affinity", affinity), ("exclusion", exclusion)) if text}
