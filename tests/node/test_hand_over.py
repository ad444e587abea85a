"""From one client to the next without a word: drains that are foretold, releases that are left to be found."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from testbed import Testbed, WireClient, share

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation

MS = 1_000_000
SLICE_MS = 100
"""The longest there is: what a test does within it takes a hundredth of that."""


@pytest.fixture
def one(testbed: Testbed) -> Iterator[WireClient]:
    """A client of allocation one, which half of a GPU is; `two` is the other half."""
    testbed.manager(f"slice_ms: {SLICE_MS}\n")
    with ExitStack() as stack:
        calls = stack.enter_context(testbed.calls())
        for allocation_id in ("one", "two"):
            wanted = Allocation(id=allocation_id, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
            held = calls.hold(wanted, wait_for_manager=False)
            stack.callback(held.close)
            next(held)
        yield testbed.join("one")


@pytest.fixture
def two(testbed: Testbed, one: WireClient) -> WireClient:
    return testbed.join("two")


def foretold(one: WireClient, two: WireClient, delay_ms: int) -> tuple[int, int]:
    """The first has foretold, for so long after now, when it drains; the second is granted for then, if that is after
    the slice. Returns the first one's grant and that time."""
    while True:
        one.request()
        number = one.granted()
        two.request()
        one.contended()
        ends_at_ns = time.monotonic_ns() + delay_ms * MS
        one.foretell(ends_at_ns)
        if one.held:
            break
        # Its slice was over before, as on a machine that holds this test up: in the next turn.
        one.release(number)
        two.release(two.granted())
    one.revoked()
    two.granted()
    two.begins(ends_at_ns)
    one.promised()
    return number, ends_at_ns


def left(one: WireClient, two: WireClient, part: float = 0.0, follows: bool = False) -> int:
    """What was foretold has come, and the first has left its release, by which it used so much of its slice; again in
    the next turn where this test was held up until it was too late. Returns the first one's grant."""
    delay_ms = SLICE_MS + 1
    while True:
        number, ends_at_ns = foretold(one, two, delay_ms)
        if one.leave(number, gpu_ns=int(part * SLICE_MS * MS), follows=follows):
            return number
        held_ns = time.monotonic_ns() - (ends_at_ns - delay_ms * MS)
        one.release(number, gpu_ns=int(part * held_ns))
        two.release(two.granted())


def test_the_next_is_granted_for_the_time_that_was_foretold(testbed: Testbed, one: WireClient, two: WireClient) -> None:
    # Within what a drain is waited for, which is 100 ms and a little.
    number, ends_at_ns = foretold(one, two, delay_ms=SLICE_MS + 50)
    assert one.gate.looks_at_ns == two.gate.ends_at_ns == ends_at_ns + SLICE_MS * MS
    one.send(wire.Draining(number, ends_at_ns - 10 * MS))
    two.begins(ends_at_ns - 10 * MS)
    one.release(number)
    two.begins(0)


def test_what_is_left_is_heard_at_the_end_of_the_next_ones_slice(
    testbed: Testbed, one: WireClient, two: WireClient
) -> None:
    number = left(one, two, part=1.0, follows=True)
    # Nobody but the first waits: that the second is called back is for its sake.
    two.revoked()
    account = share(testbed.status(), "one")
    # Of the slice, not none or twice of it: this test may be late by as much as a part of one.
    assert account.gpu_percent == pytest.approx(account.held_percent, rel=0.5)
    assert not any(account.offences.values())
    two.release(two.granted())
    assert one.granted() > number


def test_what_is_left_is_heard_of_before_whatever_comes_next(
    testbed: Testbed, one: WireClient, two: WireClient
) -> None:
    number = left(one, two)
    # It has work again: the request is of a client that has given back.
    one.request()
    two.release(two.granted())
    assert one.granted() > number
    assert not any(share(testbed.status(), "one").offences.values())


def test_one_that_leaves_and_sends_is_heard_once(testbed: Testbed, one: WireClient, two: WireClient) -> None:
    number = left(one, two, part=0.2, follows=True)
    one.release(number, gpu_ns=20 * MS, follows=True)
    two.revoked()
    account = share(testbed.status(), "one")
    assert not any(account.offences.values())
    # Of the slice, not twice of it.
    assert account.gpu_percent == pytest.approx(account.held_percent * 20 / SLICE_MS, rel=0.5)


def test_too_late_for_the_look_is_told(one: WireClient, two: WireClient) -> None:
    one.request()
    number = one.granted()
    # Nothing was promised, so that it has to be sent.
    assert not one.leave(number)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 24, b"\x05\x00\x18\x00\xff\xff\xff\xff" + b"\xff" * 16, os.urandom(24)],
    ids=["ones", "numbers", "random"],
)
def test_garbage_that_is_left_costs_its_owner_alone(
    garbage: bytes, testbed: Testbed, one: WireClient, two: WireClient
) -> None:
    foretold(one, two, delay_ms=SLICE_MS + 1)
    one.leave_garbage(garbage)
    assert one.ended()
    assert sum(share(testbed.status(), "one").offences.values()) == 1
    again = testbed.join("one")
    again.request()
    two.revoked()
    two.release(two.granted())
    assert again.granted()
