"""Pods with shares go through the real kube-scheduler and the assigner, as the chart installs it, onto four simulated
GPUs of a real node; what each did is seen by the simulated driver alone."""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from edgeshare.contract.assignment import parse_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.assigner import MACHINE, SCHEDULER, Assigner
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.given import listed, shares
from tests.kit.onenode.pods.pods import Manifest, Pods, container, pod
from tests.kit.onenode.watches.gpu_watch import GpuWatch
from tests.kit.onenode.watches.pods_watch import PodsWatch
from tests.kit.processes.waiting import COME_S, until

GPUS = 4
SEED = 8
PERCENTS = (5, 10, 20, 20, 30, 30, 40, 50, 60, 70, 100, 200)
RUNNING = "condition=Ready"
BURN = ("--seconds", "600")


@pytest.fixture(scope="module")
def assigner(node: Node, edgeshare: Machine) -> Iterator[Assigner]:
    """The assigner with a scheduler of its own, and edgeshare on a machine of four GPUs."""
    with Assigner(node, GPUS) as installed:
        yield installed


def asks(name: str, percent: int, *args: str, **metadata: Any) -> Manifest:
    """A pod that the assigner is asked about."""
    made = pod(name, [container(name, "main", *args, limits={GPU_PERCENT: percent})])
    made["spec"]["schedulerName"] = SCHEDULER
    made["spec"]["volumes"][0]["hostPath"]["path"] = str(MACHINE)
    for key, value in metadata.items():
        made["metadata"].setdefault(key, {}).update(value)
    return made


def assigned(node: Node) -> dict[str, set[str]]:
    """Pod → the GPUs that its annotation names; one that was evicted, and may be told of for a moment after its units
    were given to another, is none."""
    items = [each["metadata"] for each in json.loads(node.kubectl("get", "pods", "-o", "json"))["items"]]
    left = [each for each in items if "deletionTimestamp" not in each]
    noted = {each["name"]: each.get("annotations", {}).get(GPU_ASSIGNMENT) for each in left}
    return {
        name: set(parse_assignment(text)[Accelerator.GPU]["main"]) for name, text in noted.items() if text is not None
    }


def places(node: Node) -> list[int]:
    """Where the GPUs of this machine stand among the node's: those of the one before are told of as gone."""
    status = json.loads(node.kubectl("get", "acceleratornode", NODE_NAME, "--output=json"))["status"]
    return [place for place, device in enumerate(status["devices"]) if device["healthy"]]


def condition(pods: Pods, name: str) -> str:
    """Why a pod is not scheduled."""
    return pods.get(name, '.status.conditions[?(@.type=="PodScheduled")].message')


def test_mixed_pods_get_the_gpus_they_were_assigned_and_no_gpu_holds_more_than_it_has(
    assigner: Assigner, node: Node, pods: Pods, counts: Mapping[str, int]
) -> None:
    dice = random.Random(SEED)
    percents = {f"mixed-{number}": dice.choice(PERCENTS) for number in range(counts["mixed_pods"])}
    # These fill each GPU at one time; how many of the others there are at once is the machine's to say.
    halves = {f"half-{number}": 50 for number in range(2 * GPUS)}
    ended = {}
    of_each = {name: min(percent, 100) for name, percent in (percents | halves).items()}
    with GpuWatch(assigner.machine, of_each) as watch, PodsWatch(node) as ends:
        pods.create(*(asks(name, percent, *BURN) for name, percent in halves.items()))
        pods.wait(RUNNING, *halves)
        until(lambda: sorted(watch.peaks.values()) == [100] * GPUS, "each GPU is full")
        pods.create(*(asks(name, percent, "--seconds", "1") for name, percent in percents.items()))
        of_halves = {name: assigned(node)[name] for name in halves}
        pods.delete(*halves)
        while len(ended) < len(percents):
            end = ends.next(COME_S)
            assert end is not None, node.kubectl("describe", "pods")
            if end.pod in percents:
                ended[end.pod] = end
    assert {name: end.why for name, end in ended.items() if not end.succeeded} == {}
    gpus = assigned(node) | of_halves
    assert watch.seen.keys() == gpus.keys()
    # Of whole GPUs its program uses the first.
    assert {name: seen for name, seen in watch.seen.items() if not seen <= gpus[name]} == {}
    assert max(watch.peaks.values()) <= 100, watch.at_peak
    pods.delete(*percents)
    until(lambda: listed() == {} and shares() == [], "nothing is allocated")
    # What was reserved came free with it.
    until(lambda: assigner.figure("units_held") == 0, "the assigner holds nothing for anybody")
    assert assigner.figure("pods_flagged") == assigner.figure("gpus_overcommitted") == 0


def test_what_fits_only_in_sum_waits_with_the_reason_and_comes_when_something_is_released(
    assigner: Assigner, node: Node, pods: Pods
) -> None:
    holders = {f"holder-{number}": 60 for number in range(GPUS)}
    pods.create(*(asks(name, percent, *BURN) for name, percent in holders.items()))
    pods.wait(RUNNING, *holders)
    assert sorted(map(len, assigned(node).values())) == [1] * GPUS
    first, *_, last = places(node)
    # Of the node 160 units are free, so that kube-scheduler alone would take both.
    for name, percent in (("half", 50), ("most", 70)):
        pods.create(asks(name, percent, *BURN))
        pods.wait("jsonpath={.status.conditions[0].reason}=Unschedulable", name)
        said = condition(pods, name)
        assert f"{percent} units of one GPU: gpu 0: " in said
        assert f"gpu {first}: 40 of 100 units free, " in said
        assert f"gpu {last}: 40 of 100 units free, " in said
        assert "%" not in said
    pods.delete("most")
    pods.delete("holder-2")
    pods.wait(RUNNING, "half")


def test_a_leader_that_dies_leaves_a_replica_that_knows_what_it_did(assigner: Assigner, node: Node, pods: Pods) -> None:
    pods.create(*(asks(f"before-{number}", 70, *BURN) for number in range(2)))
    pods.wait(RUNNING, "before-0", "before-1")
    assigner.kill_leader()
    pods.create(*(asks(f"after-{number}", 70, *BURN) for number in range(2)))
    pods.wait(RUNNING, "after-0", "after-1")
    gpus = assigned(node)
    assert len(set().union(*gpus.values())) == GPUS


def test_affinity_and_exclusion_say_who_shares_a_gpu(assigner: Assigner, node: Node, pods: Pods) -> None:
    team = {"labels": {"edge/gpu-affinity": "team"}}
    alone = {"labels": {"edge/gpu-exclusion": "alone"}}
    pods.create(
        *(asks(f"team-{number}", 20, *BURN, **team) for number in range(3)),
        *(asks(f"alone-{number}", 20, *BURN, **alone) for number in range(2)),
        asks("other", 20, *BURN),
    )
    names = [*(f"team-{number}" for number in range(3)), *(f"alone-{number}" for number in range(2)), "other"]
    pods.wait(RUNNING, *names)
    gpus = assigned(node)
    assert len(set().union(*(gpus[name] for name in names[:3]))) == 1
    apart = set().union(*(gpus[name] for name in names[3:5]))
    assert not apart & set().union(*(gpus[name] for name in (*names[:3], "other")))


def test_a_pod_of_a_model_that_no_node_has_waits_and_one_of_ours_runs(assigner: Assigner, pods: Pods) -> None:
    pods.create(
        asks("elsewhere", 10, *BURN, annotations={"edge/gpu-model": "NVIDIA-H100"}),
        asks("here", 10, *BURN, annotations={"edge/gpu-model": f"NVIDIA-H100,{assigner.model}"}),
    )
    pods.wait(RUNNING, "here")
    pods.wait("jsonpath={.status.conditions[0].reason}=Unschedulable", "elsewhere")
    assert f": is of model {assigner.model}" in condition(pods, "elsewhere")


def test_a_pod_of_higher_priority_has_pods_of_one_gpu_evicted_where_their_sum_alone_would_do(
    assigner: Assigner, node: Node, pods: Pods
) -> None:
    node.kubectl("create", "priorityclass", "urgent", "--value=1000")
    try:
        small = {f"small-{number}": 50 if number % 2 else 45 for number in range(2 * GPUS)}
        pods.create(*(asks(name, percent, *BURN) for name, percent in small.items()))
        pods.wait(RUNNING, *small)
        before = assigned(node)
        # With the 20 units that are free, kube-scheduler would think it enough to evict one.
        urgent = asks("urgent", 60, *BURN)
        urgent["spec"]["priorityClassName"] = "urgent"
        pods.create(urgent)
        pods.wait(RUNNING, "urgent")
        after = assigned(node)
        gone = small.keys() - after.keys()
        pods.forget(*gone)
        assert len(gone) == 2
        assert [before[name] for name in gone] == [after["urgent"]] * 2
    finally:
        node.kubectl("delete", "priorityclass", "urgent")
