"""From one client to the next without a word: drains that are foretold, releases that are left to be found.

What has to be said in time is said again, by other clients, where this test was held up until it was too late: of those
whose drain was late the manager believes no forecast for a while.
"""

import random
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack

import pytest

from cuda_hook import wire
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import Testbed, share
from tests.kit.manager.wire_client import WireClient

MS = 1_000_000
SLICE_MS = 100
"""The longest there is: what a test does within it takes a hundredth of that."""

DRAINED_MS = SLICE_MS + 50
"""When a drain ends, as is foretold, since the grant: after the slice, and within what a drain is waited for, which is
100 ms and a little."""

Pair = tuple[WireClient, WireClient]
Pairs = Generator[Pair, None, None]


@pytest.fixture
def pairs(testbed: Testbed) -> Iterator[Pairs]:
    """Clients of allocations one and two, each of which half of a GPU is; of new ones each time."""
    testbed.manager(f"slice_ms: {SLICE_MS}\n")
    made = anew(testbed)
    yield made
    made.close()


def anew(testbed: Testbed) -> Pairs:
    with testbed.calls() as calls:
        while True:
            with ExitStack() as stack:
                for allocation_id in ("one", "two"):
                    wanted = Allocation(
                        id=allocation_id, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100
                    )
                    held = calls.hold(wanted, wait_for_manager=False)
                    stack.callback(held.close)
                    next(held)
                yield testbed.join("one"), testbed.join("two")
            testbed.until(lambda status: not status.allocations)


def foretold(pairs: Pairs) -> tuple[WireClient, WireClient, int, int]:
    """The first of two has foretold when it drains, and was called back before; the second is granted for then. Returns
    both, the first one's grant and that time."""
    for one, two in pairs:
        one.request()
        number = one.granted()
        two.request()
        one.contended()
        ends_at_ns = int(one.gate.granted_at_ns) + DRAINED_MS * MS
        one.foretell(ends_at_ns)
        # Else its slice was over before.
        if one.held:
            one.revoked()
            if time.monotonic_ns() < ends_at_ns:
                break
    two.granted()
    two.begins(ends_at_ns)
    one.promised()
    return one, two, number, ends_at_ns


def left(pairs: Pairs, part: float = 0.0, follows: bool = False) -> tuple[WireClient, WireClient, int]:
    """The first of two has left its release, by which it used so much of its slice. Returns both, and its grant."""
    while True:
        one, two, number, _ = foretold(pairs)
        if one.leave(number, gpu_ns=int(part * SLICE_MS * MS), follows=follows):
            return one, two, number


def assert_used(testbed: Testbed, part: float) -> None:
    """The first one used so much of its slice, once: it held at least that, and more where this test is late."""
    account = share(testbed.status(), "one")
    assert 0 < account.gpu_percent <= 1.01 * part * account.held_percent
    assert not any(account.offences.values())


def test_the_next_is_granted_for_the_time_that_was_foretold(pairs: Pairs) -> None:
    while True:
        one, two, number, ends_at_ns = foretold(pairs)
        assert one.gate.looks_at_ns == two.gate.ends_at_ns == ends_at_ns + SLICE_MS * MS
        sooner_ns = ends_at_ns - 10 * MS
        one.send(wire.Draining(number, sooner_ns))
        if two.begins(sooner_ns, until_ns=sooner_ns):
            one.release(number)
            if two.begins(0, until_ns=sooner_ns):
                break


def test_what_is_left_is_heard_at_the_end_of_the_next_ones_slice(testbed: Testbed, pairs: Pairs) -> None:
    one, two, number = left(pairs, part=1.0, follows=True)
    # Nobody but the first waits: that the second is called back is for its sake.
    two.revoked()
    assert_used(testbed, part=1.0)
    two.release(two.granted())
    assert one.granted() > number


def test_what_is_left_is_heard_of_before_whatever_comes_next(testbed: Testbed, pairs: Pairs) -> None:
    one, two, number = left(pairs)
    # It has work again: the request is of a client that has given back.
    one.request()
    two.release(two.granted())
    assert one.granted() > number
    assert not any(share(testbed.status(), "one").offences.values())


def test_one_that_leaves_and_sends_is_heard_once(testbed: Testbed, pairs: Pairs) -> None:
    one, two, number = left(pairs, part=0.2, follows=True)
    one.release(number, gpu_ns=20 * MS, follows=True)
    two.revoked()
    assert_used(testbed, part=0.2)


def test_too_late_for_the_look_is_told(pairs: Pairs) -> None:
    one, _ = next(pairs)
    one.request()
    number = one.granted()
    # Nothing was promised, so that it has to be sent.
    assert not one.leave(number)


@pytest.mark.parametrize(
    "garbage",
    [b"\xff" * 24, b"\x05\x00\x18\x00\xff\xff\xff\xff" + b"\xff" * 16, random.Random(1).randbytes(24)],
    ids=["ones", "numbers", "random"],
)
def test_garbage_that_is_left_costs_its_owner_alone(garbage: bytes, testbed: Testbed, pairs: Pairs) -> None:
    while True:
        one, two, _, _ = foretold(pairs)
        one.leave_garbage(garbage)
        if time.monotonic_ns() < one.gate.looks_at_ns:
            break
    assert one.ended()
    assert sum(share(testbed.status(), "one").offences.values()) == 1
    again = testbed.join("one")
    again.request()
    two.revoked()
    two.release(two.granted())
    assert again.granted()
