"""What clients may say, and how much of it: who says more, or nonsense, is the only one that it costs anything."""

import os
import signal
import time
from contextlib import closing, suppress

import pytest

from cuda_hook import wire
from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import MIB, Manager, Testbed
from tests.kit.manager.wire_client import WireClient

RECORDS_PER_S = 100
"""As few as a manager can be told to read; at once it reads a quarter of them."""

STALE_RECORDS = 30
"""Each costs twenty, so that it takes six seconds until they may have been read."""

GARBAGE = {
    "nothing but zeros": bytes(8),
    "a byte": b"\x01",
    "too long": bytes(4096),
    "a kind that does not exist": wire.encode(wire.Request()).replace(b"\x04", b"\x63", 1),
    "a size that is not the packet's": wire.encode(wire.Request()) + b"\0",
    "an answer": wire.encode(wire.Reserved(1, 0, True)),
    "a second HELLO": wire.encode(wire.Hello(1, 1, wire.Accelerator.GPU)),
    "a retired kind": wire.encode(wire.Freed(0, 0, wire.MemoryKind.PLAIN)).replace(b"\x0b", b"\x09", 1),
    "a context less than none": wire.encode(wire.Freed(0, 0, wire.MemoryKind.CONTEXT)),
    "a device that it has not": wire.encode(wire.Reserve(1, MIB, 3, wire.MemoryKind.PLAIN)),
    "more freed than it has": wire.encode(wire.Freed(MIB, 0, wire.MemoryKind.PLAIN)),
}


@pytest.mark.parametrize("packet", GARBAGE.values(), ids=GARBAGE)
def test_garbage_costs_its_sender_the_connection_and_nobody_else(
    testbed: Testbed, manager: Manager, two: tuple[str, str], packet: bytes
) -> None:
    wrong, right, other = testbed.join("one"), testbed.join("one"), testbed.join("two")
    right.request()
    number = right.granted()
    wrong.socket.send(packet)
    assert wrong.ended()
    assert wrong.epoch == 0
    assert right.held
    other.request()
    right.revoked()
    right.release(number)
    other.granted()
    said = [line for line in manager.log().splitlines() if "its connection is closed" in line]
    assert len(said) == 1
    assert f"allocation one, pid {os.getpid()}:" in said[0]


def sent_until_full(client: WireClient) -> int:
    """Sends as fast as it can until the socket takes no more; returns how many records that were."""
    client.socket.setblocking(False)
    packet = wire.encode(wire.Usage(1, 1))
    sent = 0
    with suppress(BlockingIOError):
        while True:
            client.socket.send(packet)
            sent += 1
    return sent


def test_a_flood_is_slowed_and_the_neighbour_is_served(testbed: Testbed) -> None:
    testbed.manager(f"max_records_per_s: {RECORDS_PER_S}\n")
    with testbed.calls() as calls:
        held = []
        for allocation_id in ("flood", "calm"):
            wanted = Allocation(id=allocation_id, device_ids=testbed.uuids[:1], request_percent=50)
            held.append(calls.hold(wanted, wait_for_manager=False))
            next(held[-1])
        flood, calm = testbed.join("flood"), testbed.join("calm")
        began_s = time.monotonic()
        room = sent_until_full(flood)
        for _ in range(20):
            calm.request()
            calm.release(calm.granted())
        for _ in zip(range(5), calls.watch(100 * MS), strict=False):
            pass
        again = sent_until_full(flood)
        # Its socket has room for no more than what the manager may have read: it reads no faster, and keeps nothing.
        assert again <= RECORDS_PER_S * (time.monotonic() - began_s) + RECORDS_PER_S // 4
        assert room > 0


def test_many_clients_of_an_allocation_do_not_go_round_its_limit(testbed: Testbed) -> None:
    testbed.manager(f"max_records_per_s: {RECORDS_PER_S}\n")
    wanted = Allocation(id="many", device_ids=testbed.uuids[:1], request_percent=50)
    with testbed.calls() as calls, closing(calls.hold(wanted, wait_for_manager=False)) as held:
        next(held)
        clients = [testbed.join("many") for _ in range(32)]
        began_s, before = time.monotonic(), testbed.status().manager.records
        for client in clients:
            sent_until_full(client)
        for _ in zip(range(10), calls.watch(100 * MS), strict=False):
            pass
        read = testbed.status().manager.records - before
        # Each may have been read once when there was still a record to be had.
        assert 0 < read <= RECORDS_PER_S * (time.monotonic() - began_s) + RECORDS_PER_S // 4 + len(clients)


def test_who_says_more_than_it_may_is_not_heard_for_others_sake(testbed: Testbed) -> None:
    manager = testbed.manager(f"max_records_per_s: {RECORDS_PER_S}\n")
    wanted = Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
    with testbed.calls() as calls, closing(calls.hold(wanted, wait_for_manager=False)) as held:
        next(held)
        loud, asking = testbed.join("one"), testbed.join("one")
        loud.ask(wire.Reserve(1, 90 * MIB, 0, wire.MemoryKind.PLAIN))
        # All of it has come before any of it is looked at.
        manager.process.send_signal(signal.SIGSTOP)
        for _ in range(STALE_RECORDS):
            loud.send(wire.Release(1, 0, False))
        loud.send(wire.Freed(90 * MIB, 0, wire.MemoryKind.PLAIN))
        asking.send(wire.Reserve(1, 90 * MIB, 0, wire.MemoryKind.PLAIN))
        manager.process.send_signal(signal.SIGCONT)
        assert asking.answer() == wire.Reserved(1, 10 * MIB, False)


def test_one_that_is_heard_for_anothers_sake_has_nobody_heard_for_its_own(testbed: Testbed) -> None:
    """Who asks first has what the others have freed by then, however many of them ask, too: not the last of a chain."""
    manager = testbed.manager()
    wanted = Allocation(id="one", device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
    with testbed.calls() as calls, closing(calls.hold(wanted, wait_for_manager=False)) as held:
        next(held)
        first, heard, frees = (testbed.join("one") for _ in range(3))
        frees.ask(wire.Reserve(1, 90 * MIB, 0, wire.MemoryKind.PLAIN))
        manager.process.send_signal(signal.SIGSTOP)
        for client in (first, heard):
            client.send(wire.Reserve(1, 60 * MIB, 0, wire.MemoryKind.PLAIN))
        frees.send(wire.Freed(90 * MIB, 0, wire.MemoryKind.PLAIN))
        manager.process.send_signal(signal.SIGCONT)
        answers = [client.answer() for client in (first, heard)]
    assert [isinstance(each, wire.Reserved) and each.granted for each in answers] == [True, False]
