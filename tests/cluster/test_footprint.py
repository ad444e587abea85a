"""edgeshare fits on an edge node."""

import pytest

from edgeshare.contract.names import GPU_PERCENT
from tests.kit.onenode.installed.footprint import working_set_mib
from tests.kit.onenode.installed.parts import MANAGER, PLUGIN, Parts
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.pods import Pods

LIMIT_MIB = 100


@pytest.fixture
def busy(pods: Pods) -> list[str]:
    """Pods that have run, so that both parts have done all that they do."""
    names = [f"guest-{number}" for number in range(4)]
    for name in names:
        pods.start(name, "--seconds", "1", limits={GPU_PERCENT: 30})
    pods.wait("jsonpath={.status.phase}=Succeeded", *names)
    return names


def test_plugin_and_manager_together_stay_within_a_hundred_mebibytes(busy: list[str], node: Node, parts: Parts) -> None:
    sizes = {name: working_set_mib(node.container_pid(parts.container(name))) for name in (PLUGIN, MANAGER)}
    assert sum(sizes.values()) <= LIMIT_MIB, sizes
