"""Assignments outlive whatever of the node's own ends and starts again, on real kubelets."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from edgeshare.contract.names import GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import PLUGIN, Parts
from tests.kit.onenode.installed.release import GPUS
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import wait_until_executing
from tests.kit.onenode.pods.given import assert_all_agree, listed, shares
from tests.kit.onenode.pods.pods import Pods
from tests.kit.onenode.watches.units_watch import UnitsWatch
from tests.kit.processes.waiting import until

LONG, SHORT = ("--seconds", "600"), ("--seconds", "0.2")
READY = "condition=Ready"
SUCCEEDED = "jsonpath={.status.phase}=Succeeded"
UNITS = GPUS * 100
KEPT, AGAIN = "runs-on", "starts-again"

Assignment = tuple[frozenset[str], str, str]
"""A pod's units, the GPU that its container was told, and the share manager's allocation."""


@pytest.fixture(scope="module")
def kept(node: Node, edgeshare: Machine, kubelet: str) -> Iterator[Pods]:
    """A pod that lives as long as this module, in one container."""
    pods = Pods(node)
    pods.start(KEPT, *LONG, limits={GPU_PERCENT: 30}, restart="Always")
    pods.wait(READY, KEPT)
    yield pods
    pods.delete_all()


def assignment(pods: Pods, name: str) -> Assignment:
    """What a pod has now."""
    (share,) = shares(name)
    return listed()[name, "main"], pods.gpu(name), share.allocation.id


def wait_until_joined(machine: Machine, name: str) -> None:
    """Return when a pod's program executes, as a client of the share manager."""
    wait_until_executing(machine, name)
    until(lambda: [len(each.clients) for each in shares(name)] == [1], f"{name}'s program has joined")


@pytest.fixture
def none_changes(edgeshare: Machine, kept: Pods) -> Iterator[None]:
    """That pod has the same before and after a test, and in the same container."""
    before, container_before = assignment(kept, KEPT), kept.container(KEPT)
    yield
    wait_until_joined(edgeshare, KEPT)
    assert assignment(kept, KEPT) == before
    assert kept.container(KEPT) == container_before
    assert kept.container(KEPT, field=".restartCount") == "0"
    assert_all_agree(KEPT)


@pytest.mark.parametrize(
    "ends", ["container", "kubelet", "plugin", pytest.param("plugin-and-kubelet", marks=pytest.mark.each_kubelet)]
)
def test_assignments_are_kept_over_a_restart_of_the(
    ends: str, node: Node, edgeshare: Machine, parts: Parts, none_changes: None, pods: Pods
) -> None:
    # Made for each restart: a kubelet of 1.34 that starts may fail a pod of which it finds an ended container, too.
    pods.start(AGAIN, *LONG, limits={GPU_PERCENT: 40}, restart="Always")
    pods.wait(READY, AGAIN)
    wait_until_joined(edgeshare, AGAIN)
    before, container_before = assignment(pods, AGAIN), pods.container(AGAIN)
    plugin, life = parts.container(PLUGIN), parts.life()

    def runs_again() -> bool:
        running = pods.container(AGAIN, field=".state.running.startedAt")
        return bool(running) and pods.container(AGAIN) != container_before

    with node.kubelet_down() if "kubelet" in ends else nullcontext():
        if "plugin" in ends:
            node.kill_container(plugin)
    if ends != "container":
        parts.until_registered_after(life)
    # Not before: a kubelet that starts admits its pods anew, and fails one whose container does not run while no plugin
    # is registered, as after a reboot.
    node.kill_container(container_before)
    until(runs_again, "its container has started again")
    wait_until_joined(edgeshare, AGAIN)
    assert assignment(pods, AGAIN) == before
    # What is handed out next is none of theirs, and there is room beside them.
    pods.start("beside", *LONG, limits={GPU_PERCENT: 30})
    pods.wait(READY, "beside")
    assert pods.gpu("beside") == pods.gpu(AGAIN) == pods.gpu(KEPT)
    assert_all_agree(KEPT, AGAIN, "beside")


def test_a_broken_stream_is_opened_anew_while_the_plugin_runs_on(
    node: Node, parts: Parts, none_changes: None, pods: Pods
) -> None:
    plugin, life = parts.container(PLUGIN), parts.life()
    with UnitsWatch(node) as watch:
        assert parts.cut_connections() > 0
        parts.until_registered_after(life)
        pods.start("after", *LONG, limits={GPU_PERCENT: 100})
        pods.wait(READY, "after")
        watch.until_allocatable(UNITS)
    assert {seen.capacity for seen in watch.seen} == {UNITS}
    assert parts.container(PLUGIN) == plugin


@pytest.mark.each_kubelet
def test_a_pod_that_succeeded_stays_so_where_the_plugin_is_gone(
    node: Node, parts: Parts, none_changes: None, pods: Pods
) -> None:
    pods.start("done", *SHORT, limits={GPU_PERCENT: 20})
    pods.wait(SUCCEEDED, "done")

    def ended() -> list[str]:
        said = [pods.get("done", f".status.{field}") for field in ("phase", "reason")]
        return [*said, *(pods.container("done", field=field) for field in (".containerID", ".restartCount"))]

    before = ended()
    with parts.away():
        node.restart_kubelet()
        pods.wait_until_read()
        assert ended() == before
    assert ended() == before
