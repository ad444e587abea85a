"""A GPU's health moves what a real kubelet can give out, and never the node's capacity."""

from collections.abc import Iterator

import pytest
from onenode.node import Node
from onenode.parts import MANAGER, PLUGIN, Parts
from onenode.release import GPUS
from onenode.units_watch import UnitsWatch

from simgpu.machine import Machine

pytestmark = pytest.mark.usefixtures("kubelet")

HALTED_XID = 62  # NVIDIA's for a micro-controller of the GPU that has halted
UNITS = GPUS * 100


@pytest.fixture
def sound(parts: Parts) -> Iterator[None]:
    """At the end all GPUs are well: after an XID they are when plugin and manager start anew."""
    yield
    parts.kill(PLUGIN, MANAGER)


def test_allocatable_follows_health_and_capacity_stays(
    node: Node, edgeshare: Machine, parts: Parts, sound: None
) -> None:
    first, *others = [gpu.index for gpu in edgeshare.gpus()]
    with UnitsWatch(node) as watch:
        edgeshare.inject_xid(first, HALTED_XID)
        watch.until_allocatable(UNITS - 100)
        parts.kill(PLUGIN)
        watch.until_allocatable(UNITS)
        for each in (first, *others):
            edgeshare.inject_xid(each, HALTED_XID)
        watch.until_allocatable(0)
        parts.kill(PLUGIN)
        watch.until_allocatable(UNITS)
    assert {seen.capacity for seen in watch.seen} == {UNITS}
