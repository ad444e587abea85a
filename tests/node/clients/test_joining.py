"""Who is welcomed: by the first record, its versions, its accelerator, and how many are there."""

from contextlib import ExitStack, closing

import pytest

from bench.host import descriptors
from cuda_hook import wire
from edgeshare.contract.units import UNITS_PER_DEVICE
from edgeshare.v1.allocations_pb2 import Allocation
from sharemgr.node.clients.budget import clients_most
from tests.kit.manager.testbed import EDGESHARE, Testbed, share


def test_a_connection_that_begins_with_anything_but_hello_is_closed(testbed: Testbed, two: tuple[str, str]) -> None:
    client = testbed.connect("one")
    client.send(wire.Request())
    assert client.ended()


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (wire.Hello(4, 9, wire.Accelerator.GPU), wire.Refusal.VERSION),
        (wire.Hello(4, 4, wire.Accelerator.GPU), wire.Refusal.VERSION),
        (wire.Hello(1, 1, wire.Accelerator.EDGETPU), wire.Refusal.ACCELERATOR),
    ],
)
def test_one_that_does_not_fit_is_told_why(
    testbed: Testbed, two: tuple[str, str], hello: wire.Hello, reason: wire.Refusal
) -> None:
    client = testbed.connect("one")
    answer = client.ask(hello)
    assert isinstance(answer, wire.Refused)
    assert answer.reason == reason
    assert answer.text
    assert client.ended()


@pytest.mark.parametrize(("spoken", "version"), [((1, 1), 1), ((1, 2), 2), ((2, 2), 2), ((2, 9), 3)])
def test_one_is_welcomed_with_the_highest_version_that_both_speak(
    testbed: Testbed, two: tuple[str, str], spoken: tuple[int, int], version: int
) -> None:
    client = testbed.connect("one")
    answer = client.ask(wire.Hello(*spoken, wire.Accelerator.GPU))
    assert isinstance(answer, wire.Welcome)
    assert answer.version == version


def test_an_allocation_has_a_bounded_number_of_clients(testbed: Testbed) -> None:
    testbed.manager("max_clients: 2\n")
    with testbed.calls() as calls:
        wanted = Allocation(id="full", device_ids=testbed.uuids[:1], request_percent=50)
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        first, _ = testbed.join("full"), testbed.join("full")
        for _ in range(100):
            refused = testbed.connect("full")
            answer = refused.answer()
            assert isinstance(answer, wire.Refused)
            assert answer.reason == wire.Refusal.FULL
            assert refused.ended()
            refused.close()
        first.close()
        testbed.until(lambda status: len(share(status, "full").clients) == 1)
        testbed.join("full")


def test_one_allocation_cannot_have_all_clients_that_a_node_has_descriptors_for(testbed: Testbed) -> None:
    descriptors_most, percent = 600, 40
    manager = testbed.manager("max_clients: 4096\n", ("prlimit", f"--nofile={descriptors_most}", EDGESHARE))
    most = clients_most(descriptors_most)
    with testbed.calls() as calls, ExitStack() as stack:
        for name in ("crowd", "good"):
            wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=percent)
            next(stack.enter_context(closing(calls.hold(wanted, wait_for_manager=False))))
        own = most // 2 * percent // (len(testbed.uuids) * UNITS_PER_DEVICE)
        for _ in range(own + most - most // 2):
            testbed.join("crowd")
        for _ in range(3):
            refused = testbed.connect("crowd")
            answer = refused.answer()
            assert isinstance(answer, wire.Refused)
            assert answer.reason == wire.Refusal.FULL
            assert "node" in answer.text
            assert refused.ended()
            refused.close()
        for _ in range(own):
            testbed.join("good")
        assert share(calls.status(), "crowd").offences["clients"] == 3
        assert descriptors(manager.process.pid) < descriptors_most
    assert "Too many open files" not in manager.log()


def test_one_that_never_says_hello_is_sent_away(testbed: Testbed, two: tuple[str, str]) -> None:
    silent, joined = testbed.connect("one"), testbed.join("one")
    assert silent.ended()
    joined.request()
    joined.granted()
