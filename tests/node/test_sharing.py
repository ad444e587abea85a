"""Several programs let in at once, with the real manager. What each has then is held on the virtual clock
(tests/virtual/sharing/test_sharing.py)."""

import os

import pytest

from edgeshare.v1.allocations_pb2 import Allocation
from edgeshare.v1.status_pb2 import NodeStatus
from tests.kit.manager.busy import all_granted, burn
from tests.kit.manager.testbed import Manager, Testbed


def beside(status: NodeStatus) -> bool:
    """Whether both are there, and let in at once."""
    return all_granted(2)(status) and all(each.beside for each in status.allocations)


@pytest.mark.measures
def test_one_that_leaves_gaps_is_let_in_beside_one_that_does_not_while_it_is_there(
    testbed: Testbed, manager: Manager
) -> None:
    thinks = ("--mode", "think", "--kernel-us", "200", "--sync-every", "4", "--think-us", "3000")
    burn(testbed, "light", *thinks, percent=40)
    burn(testbed, "heavy", "--kernel-us", "1000", percent=60)
    status = testbed.until(beside)
    (light,) = (each for each in status.allocations if each.allocation.request_percent == 40)
    os.kill(light.clients[0].pid, 9)
    status = testbed.until(lambda status: len(status.allocations) == 1 and not status.allocations[0].beside)
    assert status.allocations[0].allocation.request_percent == 60


@pytest.mark.measures
def test_who_tells_what_no_hook_does_is_singled_out_and_the_others_stay(testbed: Testbed, manager: Manager) -> None:
    thinks = ("--mode", "think", "--kernel-us", "200", "--sync-every", "4", "--think-us", "3000")
    burn(testbed, "light", *thinks, percent=40)
    burn(testbed, "heavy", "--kernel-us", "1000", percent=50)
    testbed.until(beside)
    with testbed.calls() as calls:
        liar = Allocation(id="liar", device_ids=testbed.uuids[:1], request_percent=1)
        held = calls.hold(liar, wait_for_manager=False)
        next(held)
        testbed.join("liar").count_gpu(gpu_ns=1, drained_gpu_ns=2)
        by_request = {40: True, 50: True, 1: False}
        testbed.until(
            lambda status: {each.allocation.request_percent: each.beside for each in status.allocations} == by_request
        )
        held.close()
