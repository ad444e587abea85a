"""What a container gets with its units: one GPU, its part of the memory, and the hook where something is shared."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import PLUGIN, Parts
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import wait_until_executing
from tests.kit.onenode.pods.given import clients
from tests.kit.onenode.pods.pods import WAIT, Pods
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import until

READY = "condition=Ready"
SUCCEEDED = "jsonpath={.status.phase}=Succeeded"
FAILED = "jsonpath={.status.phase}=Failed"
LONG = ("--seconds", "600")
CAP_MIB = 2048
ABOVE_CAP_MIB = 3000
MIB = 1 << 20
HOOK = "libedgeshare_cuda.so"


def mapped(pods: Pods, name: str) -> str:
    """What the pod's first process has mapped."""
    return pods.run(name, "cat", "/proc/1/maps")


def test_memory_cap_holds_in_a_pod(pods: Pods) -> None:
    capped = {"edge/gpu-percent": 30, "edge/gpu-memory-mib": CAP_MIB}
    above, short = ("--alloc-mib", str(ABOVE_CAP_MIB)), ("--seconds", "0.1", "--json")
    pods.start("memory-above", *above, *short, limits=capped)
    pods.start("memory-below", "--alloc-mib", str(CAP_MIB // 2), *short, limits=capped)
    # 30 percent of a GPU's memory, where nothing else is asked for, is more.
    pods.start("memory-default", *above, *short, limits={"edge/gpu-percent": 30})
    pods.wait(FAILED, "memory-above")
    pods.wait(SUCCEEDED, "memory-below", "memory-default")
    assert pods.log("memory-above") == "burn: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY\n"
    below = json.loads(pods.log("memory-below"))
    assert below["memory_total_bytes"] == CAP_MIB * MIB
    assert below["memory_free_bytes"] <= CAP_MIB // 2 * MIB


def test_pods_that_do_not_fit_on_one_gpu_get_two(edgeshare: Machine, pods: Pods) -> None:
    names = [pods.start(f"large-{number}", *LONG, limits={"edge/gpu-percent": 60}) for number in (1, 2)]
    pods.wait(READY, *names)
    gpus = {pods.gpu(name) for name in names}
    assert gpus == {gpu.uuid for gpu in edgeshare.gpus()}


def test_part_of_a_gpu_comes_with_the_hook_and_a_whole_one_without(edgeshare: Machine, pods: Pods) -> None:
    pods.start("part", *LONG, limits={"edge/gpu-percent": 99})
    pods.start("whole", *LONG, limits={"edge/gpu-percent": 100})
    wait_until_executing(edgeshare, "part", "whole")
    assert HOOK in mapped(pods, "part")
    assert HOOK not in mapped(pods, "whole")
    # Those of pods that are over, it knows until they were compared.
    until(lambda: clients() == {"part": 1, "whole": 0}, "part's program is a client of the manager, and nobody else")


def test_deleted_pod_gives_its_units_to_the_next(pods: Pods) -> None:
    limits = {"edge/gpu-percent": 100}
    holders = [pods.start(f"holder-{number}", *LONG, limits=limits) for number in (1, 2)]
    pods.wait(READY, *holders)
    freed = pods.gpu(holders[0])
    pods.start("next", *LONG, limits={"edge/gpu-percent": 10})
    pods.wait("condition=PodScheduled=False", "next")
    pods.delete(holders[0])
    pods.wait(READY, "next")
    assert pods.gpu("next") == freed


def test_pod_that_fits_on_no_single_gpu_fails_with_the_reason_where_all_units_are_told(pods: Pods) -> None:
    holders = [pods.start(f"holder-{number}", *LONG, limits={"edge/gpu-percent": 60}) for number in (1, 2)]
    pods.wait(READY, *holders)
    # 80 units are free on the node, so the scheduler, which sees only their sum, sends it there.
    pods.start("scattered", *LONG, limits={"edge/gpu-percent": 50})
    pods.wait(FAILED, "scattered")
    assert "no single GPU has 50 of 100 units free" in pods.get("scattered", ".status.message")


@pytest.fixture
def adding_up(node: Node, parts: Parts) -> Iterator[None]:
    """Nothing places pods by GPU, as far as the plugin knows."""

    def choose(label: str, config: str) -> None:
        node.kubectl("label", "node", NODE_NAME, label)
        os.kill(node.container_pid(parts.container(PLUGIN)), signal.SIGHUP)
        until(lambda: f"config_info,{config}" in parts.figures(), f"the plugin has config {config}")

    choose("edge/config=adding-up", "adding-up")
    yield
    choose("edge/config-", "default")


def test_pod_that_fits_on_no_single_gpu_waits_until_one_has_room(node: Node, adding_up: None, pods: Pods) -> None:
    holders = [pods.start(f"holder-{number}", *LONG, limits={"edge/gpu-percent": 60}) for number in (1, 2)]
    pods.wait(READY, *holders)
    # Of 80 free units 40 are told, beside the 120 that are held, once the kubelet has written the node's status.
    node.kubectl("wait", "--for=jsonpath={.status.allocatable.edge/gpu-percent}=160", f"node/{NODE_NAME}", WAIT)
    pods.start("scattered", *LONG, limits={"edge/gpu-percent": 50})
    pods.wait("condition=PodScheduled=False", "scattered")
    assert "1 Insufficient edge/gpu-percent" in pods.get(
        "scattered", '.status.conditions[?(@.type=="PodScheduled")].message'
    )
    of_pod = "--field-selector=involvedObject.name=scattered,reason=FailedScheduling"
    until(
        lambda: "1 Insufficient edge/gpu-percent" in node.kubectl("get", "events", of_pod, "-o", "wide"),
        "an event says why it waits",
    )
    for number in (1, 2):
        # What fits one GPU goes by.
        pods.start(f"fits-{number}", *LONG, limits={"edge/gpu-percent": 20})
        pods.wait(READY, f"fits-{number}")
    assert pods.get("scattered", ".status.phase") == "Pending"
    pods.delete(holders[0])
    pods.wait(READY, "scattered")


def test_pod_that_asks_for_a_share_that_cannot_be_given_is_refused(pods: Pods) -> None:
    with pytest.raises(NodeError) as refused:
        pods.start("too-much", *LONG, limits={"edge/gpu-percent": 130})
    assert (
        'container "main" asks for edge/gpu-percent: 130; allowed are 1 to 99 (a part of one GPU) and 100, 200, ...'
        in str(refused.value)
    )
