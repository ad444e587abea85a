"""Assignments outlive whatever of the node's own ends and starts again, on real kubelets."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from onenode.executed import wait_until_executing
from onenode.given import assert_all_agree, listed, shares
from onenode.node import Node
from onenode.parts import PLUGIN, Parts
from onenode.pods import Pods, container, pod
from onenode.release import GPUS
from onenode.units_watch import UnitsWatch
from onenode.waiting import until

from edgeshare.names import GPU_PERCENT
from simgpu.machine import Machine

LONG, SHORT = ("--seconds", "600"), ("--seconds", "0.2")
READY = "condition=Ready"
SUCCEEDED = "jsonpath={.status.phase}=Succeeded"
UNITS = GPUS * 100
ASKED = {"runs-on": 30, "starts-again": 40}

Assignments = dict[str, tuple[frozenset[str], str, str]]
"""Pod → its units, the GPU that its container was told, and the share manager's allocation."""


@pytest.fixture(scope="module")
def kept(node: Node, edgeshare: Machine, kubelet: str) -> Iterator[Pods]:
    """Two pods that live as long as this module: one whose container goes on, one whose container starts again."""
    pods = Pods(node)
    for name, units in ASKED.items():
        pods.start(name, *LONG, limits={GPU_PERCENT: units}, restart="Always")
    pods.wait(READY, *ASKED)
    yield pods
    pods.delete_all()


def assignments(pods: Pods) -> Assignments:
    """What the two have now."""
    units = listed()
    return {name: (units[name, "main"], pods.gpu(name), shares(name)[0].allocation.id) for name in ASKED}


@pytest.fixture
def none_changes(edgeshare: Machine, kept: Pods) -> Iterator[None]:
    """The two pods have the same before and after a test, and one of them in the same container."""
    before, container_before = assignments(kept), kept.container("runs-on")
    yield
    wait_until_executing(edgeshare, *ASKED)
    until(lambda: [len(each.clients) for each in shares(*ASKED)] == [1, 1], "the pods' programs have joined")
    assert assignments(kept) == before
    assert kept.container("runs-on") == container_before
    assert kept.container("runs-on", field=".restartCount") == "0"
    assert_all_agree(*ASKED)


@pytest.mark.parametrize("ends", ["container", "kubelet", "plugin", "plugin-and-kubelet"])
def test_assignments_are_kept_over_a_restart_of_the(
    ends: str, node: Node, parts: Parts, kept: Pods, none_changes: None, pods: Pods
) -> None:
    container_before, plugin, life = kept.container("starts-again"), parts.container(PLUGIN), parts.life()

    def runs_again() -> bool:
        running = kept.container("starts-again", field=".state.running.startedAt")
        return bool(running) and kept.container("starts-again") != container_before

    with node.kubelet_down() if "kubelet" in ends else nullcontext():
        if "plugin" in ends:
            node.kill_container(plugin)
    if ends != "container":
        parts.until_registered_after(life)
    # Not before: a kubelet that starts admits its pods anew, and fails one whose container does not run while no plugin
    # is registered, as after a reboot.
    node.kill_container(container_before)
    until(runs_again, "its container has started again")
    # What is handed out next is none of theirs, and there is room beside them.
    pods.start("beside", *LONG, limits={GPU_PERCENT: 30})
    pods.wait(READY, "beside")
    assert pods.gpu("beside") == kept.gpu("runs-on")
    assert_all_agree(*ASKED, "beside")


def test_a_broken_stream_is_opened_anew_while_the_plugin_runs_on(
    node: Node, parts: Parts, kept: Pods, none_changes: None, pods: Pods
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
        # The kubelet has read its pods when a new one has run.
        pods.create(pod("plain", [container("plain", "main", *SHORT, limits={})]))
        pods.wait(SUCCEEDED, "plain")
        assert ended() == before
    assert ended() == before
