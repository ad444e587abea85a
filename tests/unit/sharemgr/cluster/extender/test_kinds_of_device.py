"""EdgeTPUs are placed per device, as GPUs are, and a pod that asks for both has both on one node."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from edgeshare.contract.devices import Accelerator
from edgeshare.contract.errors import NoRoom, NotFound
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.placement.policies import POLICIES
from sharemgr.cluster.placement.preemption import victims
from sharemgr.cluster.placement.reasons import no_devices
from sharemgr.cluster.state.books import AcceleratorNode
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.pods import SharePod, parse_pod
from tests.kit.assigner.deciding import assigner_of, place

GPU, TPU = "edge/gpu-percent", "edge/tpu-percent"
NO_TPUS = no_devices(Accelerator.EDGETPU)


def node(name: str, gpus: int = 0, tpus: int = 0, sick: str = "") -> AcceleratorNode:
    devices = [
        *(Device(f"{name}-g{place}", "T4", 1000) for place in range(gpus)),
        *(
            Device(f"{name}-t{place}", "Coral", 0, f"{name}-t{place}" != sick, Accelerator.EDGETPU)
            for place in range(tpus)
        ),
    ]
    return AcceleratorNode(Inventory(name, tuple(devices)))


def pod(
    uid: str, *limits: Mapping[str, int], on: str = "", assignment: str = "", priority: int = 0, **labels: str
) -> SharePod:
    """One of containers c0, c1, … that ask for so much."""
    metadata: dict[str, Any] = {"uid": uid, "namespace": "d", "name": uid}
    metadata["labels"] = {f"edge/gpu-{key}": text for key, text in labels.items()}
    metadata["annotations"] = {"edge/gpu-assignment": assignment} if assignment else {}
    containers = [
        {"name": f"c{place}", "resources": {"limits": {key: str(size) for key, size in each.items()}}}
        for place, each in enumerate(limits)
    ]
    return parse_pod({"metadata": metadata, "spec": {"nodeName": on, "containers": containers, "priority": priority}})


def camera(uid: str, percent: int = 60, **others: Any) -> SharePod:
    return pod(uid, {TPU: percent}, **others)


def devices_of(assigner: Assigner, uid: str) -> list[str]:
    held = assigner.books.ledger.bound(uid)
    assert held is not None
    return [take.device_id for take in held.takes]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("keeps_choice", [False, True])
def test_two_parts_of_over_a_half_are_of_two_edgetpus_and_a_third_is_refused_whatever_the_sum_is(
    policy: str, keeps_choice: bool
) -> None:
    assigner = assigner_of(node("n", tpus=2), keeps_choice=keeps_choice, policy=policy)
    for uid in ("a", "b"):
        assert assigner.filter(camera(uid), ["n"]).nodes == ["n"]
        place(assigner, camera(uid), "n")
    assert sorted(devices_of(assigner, "a") + devices_of(assigner, "b")) == ["n-t0", "n-t1"]
    # 80 are left of the node's 200.
    third = assigner.filter(camera("c"), ["n"])
    assert third.nodes == []
    assert third.failed == {"n": "60 units of one EdgeTPU: tpu 0: 40 of 100 units free, tpu 1: 40 of 100 units free"}
    with pytest.raises(NoRoom, match="60 units of one EdgeTPU: tpu 0: 40 of 100"):
        assigner.decide(camera("c"), "n")
    assert assigner.filter(camera("d", 40), ["n"]).nodes == ["n"]


def test_the_assignment_says_which_edgetpu() -> None:
    assigner = assigner_of(node("n", gpus=1, tpus=1))
    placed = place(assigner, camera("a"), "n")
    assert json.loads(str(placed.assignment)) == {"c0": {TPU: ["n-t0"]}}


@pytest.mark.parametrize("keeps_choice", [False, True])
def test_a_pod_has_both_on_a_node_that_has_room_for_both(keeps_choice: bool) -> None:
    nodes = [node("g", gpus=1), node("t", tpus=1), node("f", gpus=1, tpus=1), node("b", gpus=2, tpus=1)]
    assigner = assigner_of(*nodes, keeps_choice=keeps_choice)
    place(assigner, camera("full"), "f")
    both = pod("p", {GPU: 40, TPU: 60}, {GPU: 80})
    found = assigner.filter(both, ["g", "t", "f", "b"])
    assert found.nodes == ["b"]
    if not keeps_choice:
        wished = "40 units of one GPU and 80 units of one GPU and 60 units of one EdgeTPU: "
        gpu = "gpu 0: 100 of 100 units free, 1,000 of 1,000 MiB free"
        assert found.failed == {
            "g": f"{wished}{gpu}, {NO_TPUS}",
            "t": f"{wished}{no_devices(Accelerator.GPU)}, tpu 0: 100 of 100 units free",
            "f": f"{wished}{gpu}, tpu 0: 40 of 100 units free",
        }
        assert assigner.prioritize(both, ["g", "b"]) == {"g": 0, "b": 10}
    placed = place(assigner, both, "b")
    written = json.loads(str(placed.assignment))
    assert written["c0"] == {GPU: [written["c0"][GPU][0]], TPU: ["b-t0"]}
    assert {written["c0"][GPU][0], *written["c1"]} == {"b-g0", "b-g1"}
    for on, lacking in (("g", NO_TPUS), ("t", no_devices(Accelerator.GPU))):
        with pytest.raises(NotFound) as refused:
            assigner.decide(pod("q", {GPU: 10, TPU: 10}), on)
        assert str(refused.value) == f"node {on}: {lacking}"


def test_of_many_nodes_without_room_the_last_are_told_in_short() -> None:
    names = [f"n{number:03}" for number in range(102)]
    assigner = assigner_of(*(node(name, gpus=1) for name in names))
    failed = assigner.filter(pod("p", {GPU: 10, TPU: 60}), names).failed
    assert failed["n101"] == "10 units of one GPU and 60 units of one EdgeTPU: no GPU or no EdgeTPU has as much free"


def test_what_filter_answered_is_kept_of_each_kind() -> None:
    assigner = assigner_of(node("n", gpus=1, tpus=1), keeps_choice=True)
    assert assigner.filter(pod("p", {GPU: 60, TPU: 60}), ["n"]).nodes == ["n"]
    assert assigner.filter(camera("q"), ["n"]).nodes == []
    assert assigner.filter(pod("r", {GPU: 60}), ["n"]).nodes == []
    assert devices_of(assigner_of_bound(assigner), "p") == ["n-g0", "n-t0"]


def assigner_of_bound(assigner: Assigner) -> Assigner:
    """After the bind of p, which gets what was kept."""
    place(assigner, pod("p", {GPU: 60, TPU: 60}), "n")
    return assigner


def test_another_leader_knows_all_by_the_pods_annotations() -> None:
    nodes = [node("n", gpus=1, tpus=2)]
    first = assigner_of(*nodes)
    pods = [place(first, camera("a"), "n"), place(first, pod("b", {GPU: 30, TPU: 60}), "n")]
    second = assigner_of(*nodes)
    second.pods_listed(pods)
    for assigner in (first, second):
        there = assigner.books.ledger.node("n")
        assert there is not None
        assert {each.id: there.free(each)[0] for each in there.inventory.devices} == {
            "n-g0": 70,
            "n-t0": 40,
            "n-t1": 40,
        }
        assert assigner.filter(camera("c"), ["n"]).nodes == []
    assert second.books.flagged == {}


def test_an_edgetpu_that_is_not_well_is_passed_over() -> None:
    assigner = assigner_of(node("n", tpus=2, sick="n-t0"))
    place(assigner, camera("a", 10), "n")
    assert devices_of(assigner, "a") == ["n-t1"]
    (why,) = assigner.filter(camera("b", 100), ["n"]).failed.values()
    assert why == "1 whole EdgeTPU: tpu 0: not healthy, tpu 1: 90 of 100 units free"


def test_whole_edgetpus_and_parts_are_kept_apart() -> None:
    assigner = assigner_of(node("n", tpus=3))
    place(assigner, camera("part", 10), "n")
    place(assigner, camera("whole", 200), "n")
    assert sorted(devices_of(assigner, "part") + devices_of(assigner, "whole")) == ["n-t0", "n-t1", "n-t2"]
    assert assigner.filter(camera("more", 100), ["n"]).nodes == []


def test_models_affinity_and_exclusion_are_of_gpus_alone() -> None:
    assigner = assigner_of(node("n", gpus=2, tpus=1))
    for uid, labels in (("a", {"exclusion": "x"}), ("b", {"exclusion": "y", "affinity": "z"}), ("c", {})):
        place(assigner, pod(uid, {GPU: 10, TPU: 10} if labels else {TPU: 10}, **labels), "n")
    held = {uid: devices_of(assigner, uid) for uid in "abc"}
    assert held["c"] == ["n-t0"]
    assert held["a"][1] == held["b"][1] == "n-t0"
    assert held["a"][0] != held["b"][0]
    # Those of one affinity share the GPU, and take of the EdgeTPUs what there is.
    assigner = assigner_of(node("n", gpus=2, tpus=2))
    for uid in "ab":
        place(assigner, pod(uid, {GPU: 10, TPU: 60}, affinity="z"), "n")
    assert [devices_of(assigner, uid) for uid in "ab"] == [["n-g0", "n-t0"], ["n-g0", "n-t1"]]


def test_who_has_to_go_is_found_by_edgetpu() -> None:
    assigner = assigner_of(node("n", gpus=1, tpus=2))
    for uid, device, percent, priority in (("low", 0, 60, 0), ("high", 0, 30, 5), ("mid", 1, 70, 1)):
        assignment = json.dumps({"c0": {TPU: [f"n-t{device}"]}})
        assigner.pod_told("ADDED", camera(uid, percent, on="n", assignment=assignment, priority=priority))
    books = assigner.books
    assert victims(books, camera("p", 30, priority=9), "n", []) == []
    # The least important, where that is enough.
    assert victims(books, camera("p", 60, priority=9), "n", []) == ["low"]
    assert victims(books, camera("p", 80, priority=9), "n", []) == ["mid"]
    assert victims(books, camera("p", 80, priority=1), "n", []) is None
    both = {GPU: 50, TPU: 200}
    assert sorted(victims(books, pod("p", both, priority=9), "n", []) or ()) == ["high", "low", "mid"]
    assert victims(books, pod("p", both, priority=5), "n", []) is None
    # Nobody's going gives it a second GPU.
    assert victims(books, pod("p", {GPU: 200, TPU: 10}, priority=9), "n", []) is None


def test_a_waiting_pod_is_told_of_when_its_edgetpu_is_free() -> None:
    assigner = assigner_of(node("g", gpus=1), node("n", tpus=1))
    bound = place(assigner, camera("a"), "n")
    assigner.pod_told("ADDED", bound)
    for waiting in (camera("p"), pod("q", {GPU: 10, TPU: 60})):
        assert assigner.filter(waiting, ["g", "n"]).nodes == []
    assert assigner.fits_now() is None
    assigner.pod_told("DELETED", bound)
    assert assigner.fits_now() == "n"


def test_a_node_of_gpus_alone_has_no_row_among_the_edgetpus() -> None:
    assigner = assigner_of(node("g", gpus=1), node("t", tpus=1))
    place(assigner, pod("p", {GPU: 10}), "g")
    place(assigner, camera("q"), "t")
    assigner.filter(camera("r"), ["g", "t"])
    tables = {kind: placer.table for kind, placer in assigner._placers._of.items()}
    assert {kind: list(table.row) for kind, table in tables.items()} == {"gpu": ["g"], "edgetpu": ["t"]}
