"""Pods get the shares that they ask for, as the simulated GPUs executed them."""

import json
import time

import pytest
from onenode.executed import executed_percents, have_shares, have_shares_in_one
from onenode.pods import Pods

from simgpu.machine import Machine

SHARES = {"share-50": 50, "share-30": 30, "share-20": 20}
SUCCEEDED = "jsonpath={.status.phase}=Succeeded"
NS_PER_S = 1_000_000_000
LEAD_NS = 15 * NS_PER_S  # from making the first pod to the moment when all begin; those that are late begin at once
SETTLED_NS = 2 * NS_PER_S


def run_together(pods: Pods, seconds: int, resource: str | None) -> tuple[int, int]:
    """Run the three for some seconds. From when to when all three ran."""
    begin_ns = time.monotonic_ns() + LEAD_NS
    for name, percent in SHARES.items():
        limits = {resource: percent} if resource else {}
        pods.start(name, "--seconds", str(seconds), "--start-at-ns", str(begin_ns), "--json", limits=limits)
    pods.wait(SUCCEEDED, *SHARES)
    begun_ns = [json.loads(pods.log(name))["begin_ns"] for name in SHARES]
    judged_from_ns, judged_to_ns = max(begun_ns) + SETTLED_NS, min(begun_ns) + seconds * NS_PER_S
    assert judged_to_ns - judged_from_ns > (seconds * NS_PER_S - SETTLED_NS) / 2, "they did not run together"
    return judged_from_ns, judged_to_ns


@pytest.mark.alone
def test_three_pods_get_their_shares_of_one_gpu(edgeshare: Machine, pods: Pods) -> None:
    assert have_shares_in_one(edgeshare, *run_together(pods, 20, "edge/gpu-percent"), SHARES)


@pytest.mark.alone
def test_pods_without_a_share_do_not_happen_to_use_as_much(edgeshare: Machine, pods: Pods) -> None:
    other, shared = sorted(executed_percents(edgeshare, *run_together(pods, 6, None)), key=len)
    assert not other
    assert shared.keys() == SHARES.keys()
    assert not have_shares(shared, SHARES)
