"""Pods get the shares that they ask for, as the simulated GPUs executed them."""

import pytest
from onenode.executed import come_to_have_shares, execute_for, have_shares, wait_until_executing
from onenode.pods import Pods

from simgpu.machine import Machine

SHARES = {"share-50": 50, "share-30": 30, "share-20": 20}
WINDOW_S = 4


def run_together(machine: Machine, pods: Pods, resource: str | None) -> None:
    """Have the three run, until the test's end."""
    for name, percent in SHARES.items():
        pods.start(name, "--seconds", "600", limits={resource: percent} if resource else {})
    wait_until_executing(machine, *SHARES)


@pytest.mark.alone
def test_three_pods_get_their_shares_of_one_gpu(edgeshare: Machine, pods: Pods) -> None:
    run_together(edgeshare, pods, "edge/gpu-percent")
    assert come_to_have_shares(edgeshare, SHARES)


@pytest.mark.alone
def test_pods_without_a_share_do_not_happen_to_use_as_much(edgeshare: Machine, pods: Pods) -> None:
    run_together(edgeshare, pods, None)
    other, shared = sorted(execute_for(edgeshare, WINDOW_S), key=len)
    assert not other
    assert shared.keys() == SHARES.keys()
    assert not have_shares(shared, SHARES)
