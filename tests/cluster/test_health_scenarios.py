"""A GPU's health moves what a real kubelet can give out, and never the node's capacity."""

from collections.abc import Iterator

import pytest

from edgeshare.contract.names import GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import PLUGIN, Parts
from tests.kit.onenode.installed.release import GPUS
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import Pods
from tests.kit.onenode.watches.units_watch import UnitsWatch

pytestmark = pytest.mark.usefixtures("kubelet")

LONG = ("--seconds", "600")
UNITS = GPUS * 100


@pytest.fixture
def sound(edgeshare: Machine) -> Iterator[None]:
    """At the end all GPUs are well: after a double-bit error they are when they were reset."""
    yield
    for gpu in edgeshare.gpus():
        edgeshare.reset(gpu.index)


@pytest.mark.each_kubelet
def test_allocatable_follows_health_and_capacity_stays(node: Node, edgeshare: Machine, sound: None) -> None:
    first, second = [gpu.index for gpu in edgeshare.gpus()]
    with UnitsWatch(node) as watch:
        edgeshare.inject_ecc(first, double=True)
        watch.until_allocatable(UNITS - 100)
        edgeshare.reset(first)
        watch.until_allocatable(UNITS)
        for each in (first, second):
            edgeshare.inject_ecc(each, double=True)
        watch.until_allocatable(0)
        for each in (first, second):
            edgeshare.reset(each)
        watch.until_allocatable(UNITS)
    assert {seen.capacity for seen in watch.seen} == {UNITS}


def test_a_fault_outlives_the_plugin(node: Node, edgeshare: Machine, parts: Parts, sound: None, pods: Pods) -> None:
    ill, well = edgeshare.gpus()
    with UnitsWatch(node) as watch:
        edgeshare.inject_ecc(ill.index, double=True)
        watch.until_allocatable(UNITS - 100)
        noted, life = len(watch.seen), parts.life()
        parts.kill(PLUGIN)
        parts.until_registered_after(life)
        watch.until_allocatable(UNITS - 100)
        # One after the other: which of two is placed is the scheduler's to say.
        pods.start("placed", *LONG, limits={GPU_PERCENT: 100})
        pods.wait("condition=Ready", "placed")
        pods.start("waits", *LONG, limits={GPU_PERCENT: 100})
        pods.wait("condition=PodScheduled=False", "waits")
        assert pods.gpu("placed") == well.uuid
        assert max(seen.allocatable for seen in watch.seen[noted - 1 :]) == UNITS - 100
        edgeshare.reset(ill.index)
        pods.wait("condition=Ready", "waits")
    assert pods.gpu("waits") == ill.uuid
    assert {seen.capacity for seen in watch.seen} == {UNITS}
