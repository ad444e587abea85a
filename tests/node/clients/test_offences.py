"""What clients do that no good one does is counted by its kind, and said in the log."""

from collections.abc import Callable

import pytest

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import Testbed, share
from tests.kit.manager.wire_client import WireClient

CLIENTS_MOST = 2


def comes_as_one_too_many(testbed: Testbed, good: WireClient) -> None:
    testbed.join("one")
    testbed.connect("one")


def speaks_another_version(testbed: Testbed, good: WireClient) -> None:
    testbed.connect("one").send(wire.Hello(9, 9, wire.Accelerator.GPU))


def says_nothing(testbed: Testbed, good: WireClient) -> None:
    testbed.connect("one")


def counts_back(testbed: Testbed, good: WireClient) -> None:
    good.count_gpu(gpu_ns=1 << 40)
    good.request()
    good.granted()
    good.count_gpu(gpu_ns=1)


def drained_more_than_it_used(testbed: Testbed, good: WireClient) -> None:
    good.count_gpu(gpu_ns=1, drained_gpu_ns=2)


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (comes_as_one_too_many, "clients", "2 clients already"),
        (speaks_another_version, "refused", "speaks versions"),
        (says_nothing, "silent", "never said HELLO"),
        (counts_back, "false-counters", "what cannot be"),
        (drained_more_than_it_used, "false-counters", "what cannot be"),
    ],
)
def test_it_is_counted_and_said(
    testbed: Testbed, act: Callable[[Testbed, WireClient], None], kind: str, said: str
) -> None:
    manager = testbed.manager(f"max_clients: {CLIENTS_MOST}\n")
    with testbed.calls() as calls:
        wanted = Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=50)
        held = calls.hold(wanted, wait_for_manager=False)
        next(held)
        good = testbed.join("one")
        act(testbed, good)
        status = testbed.until(lambda status: share(status, "one").offences[kind] > 0)
        assert {each for each, count in share(status, "one").offences.items() if count} == {kind}
        assert said in manager.log()
        held.close()
