"""Pods that ask for more of a GPU get more of it, as the simulated GPUs executed them."""

from simgpu.machine import Machine
from tests.kit.manager.busy import assert_ranked
from tests.kit.onenode.pods.executed import Together, wait_until_executing
from tests.kit.onenode.pods.pods import Pods

SHARES = {"share-50": 50, "share-30": 30, "share-20": 20}


def run_together(machine: Machine, pods: Pods, resource: str | None) -> None:
    """Have the three run, until the test's end."""
    for name, percent in SHARES.items():
        pods.start(name, "--seconds", "600", limits={resource: percent} if resource else {})
    wait_until_executing(machine, *SHARES)


def test_of_three_pods_on_one_gpu_who_asks_for_more_gets_more(edgeshare: Machine, pods: Pods) -> None:
    run_together(edgeshare, pods, "edge/gpu-percent")
    assert_ranked(Together(edgeshare, SHARES).percents(), list(SHARES))


def test_pods_without_a_share_use_about_as_much_each(edgeshare: Machine, pods: Pods) -> None:
    run_together(edgeshare, pods, None)
    percents = Together(edgeshare, SHARES).percents().values()
    # Two and a half times with shares.
    assert max(percents) < 2 * min(percents)
