"""Pods with shares go through the real kube-scheduler and the assigner, as the chart installs it, onto four simulated
GPUs and two EdgeTPUs of a real node; what each did is seen by the simulated drivers alone."""

import json
import os
import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.assignment import parse_assignment
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_PERCENT, TPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.assigner import MACHINE, SCHEDULER, SERVICE, Assigner
from tests.kit.onenode.installed.cluster_status import ClusterStatus
from tests.kit.onenode.installed.edgetpus import TPUS
from tests.kit.onenode.installed.release import NAME
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.given import listed, shares
from tests.kit.onenode.pods.pods import WAIT, Manifest, Pods, container, pod
from tests.kit.onenode.watches.gpu_watch import GpuWatch
from tests.kit.onenode.watches.pods_watch import PodsWatch
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import COME_S, until

GPUS = 4
SEED = 8
PERCENTS = (5, 10, 20, 20, 30, 30, 40, 50, 60, 70, 100, 200)
RUNNING = "condition=Ready"
BURN = ("--seconds", "600")


@pytest.fixture(scope="module")
def assigner(node: Node, edgeshare: Machine) -> Iterator[Assigner]:
    """The assigner with a scheduler of its own, and edgeshare on a machine of four GPUs and two EdgeTPUs."""
    with Assigner(node, GPUS) as installed:
        yield installed


def asks(name: str, percent: int, *args: str, tpu: int = 0, **metadata: Any) -> Manifest:
    """A pod that the assigner is asked about."""
    limits = {resource: units for resource, units in ((GPU_PERCENT, percent), (TPU_PERCENT, tpu)) if units}
    made = pod(name, [container(name, "main", *args, limits=limits)])
    made["spec"]["schedulerName"] = SCHEDULER
    made["spec"]["volumes"][0]["hostPath"]["path"] = str(MACHINE)
    for key, value in metadata.items():
        made["metadata"].setdefault(key, {}).update(value)
    return made


def infers(name: str, percent: int) -> Manifest:
    """The same of an EdgeTPU alone. Its program infers on the one whose device file its container has."""
    made = asks(name, 0, tpu=percent)
    (main,) = made["spec"]["containers"]
    main["command"] = ["/bin/sh", "-c", "exec /usr/bin/tpuburn --seconds 600 --infer-us 100000 --device /dev/apex_*"]
    main["env"].append({"name": "SIMGPU_MACHINE", "value": main["volumeMounts"][0]["mountPath"]})
    return made


def assigned(node: Node, kind: Accelerator = Accelerator.GPU) -> dict[str, set[str]]:
    """Pod → the devices of a kind that its annotation names, where it names any; one that was evicted, and may be told
    of for a moment after its units were given to another, is none."""
    items = [each["metadata"] for each in json.loads(node.kubectl("get", "pods", "-o", "json"))["items"]]
    left = [each for each in items if "deletionTimestamp" not in each]
    noted = {each["name"]: each.get("annotations", {}).get(GPU_ASSIGNMENT) for each in left}
    read = {name: parse_assignment(text) for name, text in noted.items() if text is not None}
    return {name: set(assignment[kind]["main"]) for name, assignment in read.items() if kind in assignment}


def places(node: Node) -> list[int]:
    """Where the GPUs of this machine stand among the node's: those of the one before are told of as gone."""
    status = json.loads(node.kubectl("get", "acceleratornode", NODE_NAME, "--output=json"))["status"]
    gpus = [device for device in status["devices"] if device["kind"] == Accelerator.GPU]
    return [place for place, device in enumerate(gpus) if device["healthy"]]


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
    # Each has a GPU, and as many have an EdgeTPU, too, as there are.
    holders = {f"holder-{number}": 60 * (number < len(TPUS)) for number in range(GPUS)}
    pods.create(*(asks(name, 60, *BURN, tpu=tpu) for name, tpu in holders.items()))
    pods.wait(RUNNING, *holders)
    assert sorted(map(len, assigned(node).values())) == [1] * GPUS
    held = assigned(node, Accelerator.EDGETPU)
    assert sorted(map(sorted, held.values())) == [[tpu] for tpu in TPUS]
    first, *_, last = places(node)
    gpus = tuple(f"gpu {place}: 40 of 100 units free, " for place in (first, last))
    # Of the node 160 units of GPUs and 80 of EdgeTPUs are free, so that kube-scheduler alone would take each.
    waiting = {
        "half": (asks("half", 50, *BURN), ("50 units of one GPU: gpu 0: ", *gpus)),
        "most": (asks("most", 70, *BURN), ("70 units of one GPU: gpu 0: ", *gpus)),
        "camera": (
            infers("camera", 60),
            ("60 units of one EdgeTPU: ", *(f"tpu {place}: 40 of 100" for place in (0, 1))),
        ),
    }
    for name, (made, reasons) in waiting.items():
        pods.create(made)
        pods.wait("jsonpath={.status.conditions[0].reason}=Unschedulable", name)
        said = condition(pods, name)
        assert [reason for reason in reasons if reason not in said] == [], said
        assert "%" not in said
    pods.delete("most")
    before = len(assigner.tpus.log())
    pods.delete("holder-0")
    pods.wait(RUNNING, "half", "camera")
    until(lambda: len(assigner.tpus.log()) > before, "what came infers on an EdgeTPU")
    (freed,) = held["holder-0"]
    assert assigned(node, Accelerator.EDGETPU)["camera"] == {freed}
    assert {each.device for each in assigner.tpus.log()[before:]} == {str(TPUS[freed])}


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


@pytest.fixture
def nightly(assigner: Assigner, node: Node, pods: Pods) -> Iterator[str]:
    """The pod of a Job, running, that was made of a CronJob as that would make it at its time."""
    template = {"spec": asks("nightly", 30, *BURN, tpu=30)["spec"]}
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": template}}}
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": spec}
    found = ("get", "pods", "--selector=batch.kubernetes.io/job-name=nightly", "--output=name")
    node.kubectl("create", "--filename=-", stdin=json.dumps(cron_job))
    try:
        node.kubectl("create", "job", "nightly", "--from=cronjob/nightly")
        until(lambda: bool(node.kubectl(*found)), "the Job has made its pod")
        name = node.kubectl(*found).strip().removeprefix("pod/")
        pods.wait(RUNNING, name)
        yield name
    finally:
        node.kubectl("delete", "--ignore-not-found", "--cascade=foreground", WAIT, "job/nightly", "cronjob/nightly")


def told(status: ClusterStatus) -> list[tuple[str, int, bool]] | None:
    """Of each allocation its pod, its percent and whether it is used, as the cluster's status tells it to somebody who
    may list all pods: the assigner's own service account. None where a node does not answer in time."""
    nodes = status.told(NAME, SERVICE)["nodes"]
    if any(node["error"] for node in nodes):
        return None
    allocations = [(each["allocation"], each["gpuPercent"]) for node in nodes for each in node["status"]["allocations"]]
    return sorted((each["owner"]["pod"], each["requestPercent"], used > 0) for each, used in allocations)


def test_the_use_of_a_jobs_pod_is_told_to_who_may_know_and_nothing_is_held_for_it_when_it_is_over(
    assigner: Assigner, node: Node, pods: Pods, nightly: str, tmp_path: Path
) -> None:
    status = ClusterStatus(node, tmp_path)
    # Its GPU is used, and its EdgeTPU is not.
    until(lambda: told(status) == [(nightly, 30, False), (nightly, 30, True)], "its shares are told, and their use")
    with pytest.raises(
        NodeError, match="system:serviceaccount:default:default may not list the pods of all namespaces"
    ):
        status.told("default", "default")

    # Its program ends well, as it is told to end.
    os.kill(node.container_pid(pods.container(nightly)), signal.SIGTERM)
    node.kubectl("wait", "--for=condition=Complete", "job/nightly", WAIT)
    until(lambda: listed() == {} and shares() == [], "nothing is allocated")
    until(
        lambda: assigner.figure("units_held") == assigner.figure("tpu_units_held") == 0,
        "the assigner holds nothing for anybody",
    )
    until(lambda: told(status) == [], "no share is told of")
    # The pod itself is there until somebody deletes its Job.
    assert pods.get(nightly, ".status.phase") == "Succeeded"
