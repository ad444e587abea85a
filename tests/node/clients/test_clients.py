"""What clients may say, what it gets them, and what happens when they are gone."""

import mmap
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from cuda_hook import wire
from edgeshare.client import ManagerClient
from edgeshare.v1.allocations_pb2 import Allocation
from tests.kit.manager.testbed import MIB, Manager, Testbed, share
from tests.kit.manager.wire_client import WireClient

MS = 1_000_000
RECORDS_PER_S = 100
"""As few as a manager can be told to read; at once it reads a quarter of them."""

STALE_RECORDS = 30
"""Each costs twenty, so that it takes six seconds until they may have been read."""

PLAIN = wire.MemoryKind.PLAIN

DRAIN_GRACE_NS = 100 * MS
"""How long the manager waits for one that does not drain."""


@pytest.fixture
def calls(testbed: Testbed, manager: Manager) -> Iterator[ManagerClient]:
    with testbed.calls() as calls:
        yield calls


@pytest.fixture
def two(testbed: Testbed, calls: ManagerClient) -> Iterator[tuple[str, str]]:
    """Two allocations of one GPU, half of it each, with 100 MiB."""
    held = []
    for allocation_id in ("one", "two"):
        wanted = Allocation(id=allocation_id, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
        answers = calls.hold(wanted, wait_for_manager=False)
        next(answers)
        held.append(answers)
    yield "one", "two"
    for answers in held:
        answers.close()


def in_child(act: Callable[[], object]) -> int:
    """Forks a process that does something, keeps what comes of it and waits to be killed; returns its pid when it
    has done it."""
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            kept = act()
            os.write(write_fd, b"done")
            while kept is not None:
                signal.pause()
        finally:
            os._exit(1)
    os.close(write_fd)
    with os.fdopen(read_fd, "rb") as pipe:
        assert pipe.read(4) == b"done"
    return pid


class Holders:
    """Processes that hold a slice of an allocation, each in a process group of its own."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self._pids: list[int] = []

    def begin(self, allocation_id: str, with_heir: bool = False) -> int:
        """Starts one; ``with_heir``: it has a child that inherited its socket. Returns its pid."""

        def hold() -> tuple[WireClient, int]:
            os.setpgid(0, 0)
            client = WireClient(self._testbed.folder(allocation_id) / "hook.sock")
            client.join()
            client.request()
            client.granted()
            return client, in_child(lambda: client) if with_heir else 0

        self._pids.append(in_child(hold))
        return self._pids[-1]

    def kill(self, pid: int) -> None:
        """Kills one, but not its heir."""
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def close(self) -> None:
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


@pytest.fixture
def holders(testbed: Testbed) -> Iterator[Holders]:
    holders = Holders(testbed)
    yield holders
    holders.close()


def test_two_allocations_take_turns_and_their_numbers_rise(testbed: Testbed, two: tuple[str, str]) -> None:
    one, other = (testbed.join(name) for name in two)
    one.request()
    first = one.granted()
    assert one.held
    assert not other.held
    other.request()
    one.contended()
    one.revoked()
    one.release(first, gpu_ns=MS, follows=True)
    second = other.granted()
    assert second > first
    other.revoked()
    other.release(second)
    assert one.granted() > second
    status = testbed.status()
    assert share(status, "one").grants == 2
    assert share(status, "two").grants == 1
    assert share(status, "one").gpu_percent > 0
    assert share(status, "two").gpu_percent == 0


def test_every_client_of_an_allocation_is_granted_together(testbed: Testbed, two: tuple[str, str]) -> None:
    one, twin = testbed.join("one"), testbed.join("one")
    one.request()
    one.granted()
    twin.request()
    twin.granted()
    other = testbed.join("two")
    other.request()
    one.revoked()
    twin.revoked()
    one.release(one.granted())
    assert not other.held
    twin.release(twin.granted())
    other.granted()


GARBAGE = {
    "nothing but zeros": bytes(8),
    "a byte": b"\x01",
    "too long": bytes(4096),
    "a kind that does not exist": wire.encode(wire.Request()).replace(b"\x04", b"\x63", 1),
    "a size that is not the packet's": wire.encode(wire.Request()) + b"\0",
    "an answer": wire.encode(wire.Reserved(1, 0, True)),
    "a second HELLO": wire.encode(wire.Hello(1, 1, wire.Accelerator.GPU)),
    "a retired kind": wire.encode(wire.Freed(0, 0, PLAIN)).replace(b"\x0b", b"\x09", 1),
    "a context less than none": wire.encode(wire.Freed(0, 0, wire.MemoryKind.CONTEXT)),
    "a device that it has not": wire.encode(wire.Reserve(1, MIB, 3, PLAIN)),
    "more freed than it has": wire.encode(wire.Freed(MIB, 0, PLAIN)),
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


def test_a_connection_that_begins_with_anything_but_hello_is_closed(testbed: Testbed, two: tuple[str, str]) -> None:
    client = testbed.connect("one")
    client.send(wire.Request())
    assert client.ended()


@pytest.mark.parametrize(
    ("hello", "reason"),
    [
        (wire.Hello(3, 9, wire.Accelerator.GPU), wire.Refusal.VERSION),
        (wire.Hello(3, 3, wire.Accelerator.GPU), wire.Refusal.VERSION),
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


@pytest.mark.parametrize(("spoken", "version"), [((1, 1), 1), ((1, 2), 2), ((2, 2), 2), ((2, 9), 2)])
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
        loud.ask(wire.Reserve(1, 90 * MIB, 0, PLAIN))
        # All of it has come before any of it is looked at.
        manager.process.send_signal(signal.SIGSTOP)
        for _ in range(STALE_RECORDS):
            loud.send(wire.Release(1, 0, False))
        loud.send(wire.Freed(90 * MIB, 0, PLAIN))
        asking.send(wire.Reserve(1, 90 * MIB, 0, PLAIN))
        manager.process.send_signal(signal.SIGCONT)
        assert asking.answer() == wire.Reserved(1, 10 * MIB, False)


def test_one_that_never_says_hello_is_sent_away(testbed: Testbed, two: tuple[str, str]) -> None:
    silent, joined = testbed.connect("one"), testbed.join("one")
    assert silent.ended()
    joined.request()
    joined.granted()


def test_one_that_is_killed_or_stopped_is_not_waited_for_as_one_that_only_gives_nothing_back(
    testbed: Testbed, two: tuple[str, str], holders: Holders
) -> None:
    waits_ns: dict[int, list[int]] = {0: [], signal.SIGSTOP: [], signal.SIGKILL: []}
    # Of what ends the wait three times, the shortest: a machine has bad moments.
    for number in (0, *[signal.SIGSTOP, signal.SIGKILL] * 3):
        holder = holders.begin("one")
        with testbed.join("two") as other:
            sent_ns = time.monotonic_ns()
            other.request()
            os.kill(holder, number)
            other.granted()
            waits_ns[number].append(time.monotonic_ns() - sent_ns)
        holders.kill(holder)
        testbed.until(lambda status: not share(status, "one").clients and not share(status, "two").clients)
    assert max(min(waits_ns[signal.SIGKILL]), min(waits_ns[signal.SIGSTOP])) < DRAIN_GRACE_NS <= waits_ns[0][0]


def test_a_dead_client_is_noticed_though_its_child_has_the_socket(
    testbed: Testbed, two: tuple[str, str], holders: Holders
) -> None:
    holder = holders.begin("one", with_heir=True)
    other = testbed.join("two")
    other.request()
    holders.kill(holder)
    other.granted()
    status = testbed.until(lambda status: not share(status, "one").clients)
    assert share(status, "two").clients[0].pid == os.getpid()


def test_memory_is_counted_under_the_cap_for_all_clients_together(testbed: Testbed, two: tuple[str, str]) -> None:
    one, twin = testbed.join("one"), testbed.join("one")
    assert one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)
    assert twin.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 40 * MIB, False)
    one.send(wire.Freed(10 * MIB, 0, PLAIN))
    assert one.ask(wire.MemoryQuery(2, 0)) == wire.MemoryInfo(2, 100 * MIB, 50 * MIB)
    assert twin.ask(wire.Reserve(2, 50 * MIB, 0, PLAIN)) == wire.Reserved(2, 50 * MIB, True)
    twin.send(wire.Freed(50 * MIB, 0, PLAIN))
    # Answered once what came before is heard; nothing orders what two clients say.
    assert twin.ask(wire.MemoryQuery(3, 0)) == wire.MemoryInfo(3, 100 * MIB, 50 * MIB)
    one.send(wire.Freed(20 * MIB, 0, PLAIN))
    assert one.ask(wire.MemoryQuery(3, 0)) == wire.MemoryInfo(3, 100 * MIB, 30 * MIB)
    assert share(testbed.status(), "one").memory_used_bytes == 30 * MIB
    assert share(testbed.status(), "two").memory_used_bytes == 0


def test_memory_of_a_client_that_left_is_free_when_the_driver_lists_it_no_more(
    testbed: Testbed, two: tuple[str, str]
) -> None:
    one = testbed.join("one")
    one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN))
    one.close()
    testbed.until(lambda status: share(status, "one").memory_used_bytes == 0)
    twin = testbed.join("one")
    assert twin.ask(wire.Reserve(1, 100 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)


def test_a_process_that_is_back_is_not_charged_for_its_last_connection(testbed: Testbed, two: tuple[str, str]) -> None:
    for _ in range(20):
        one = testbed.join("one")
        assert one.ask(wire.Reserve(1, 60 * MIB, 0, PLAIN)) == wire.Reserved(1, 100 * MIB, True)
        one.close()


def test_what_a_client_hints_is_told_whatever_it_is(testbed: Testbed, two: tuple[str, str]) -> None:
    one, twin = testbed.join("one"), testbed.join("one")
    one.hint(1_500_000)
    assert share(testbed.status(), "one").queued_ns == 1_500_000
    twin.hint((1 << 64) - 1)
    assert share(testbed.status(), "one").queued_ns == (1 << 63) - 1


def test_a_page_is_not_the_clients_to_write(testbed: Testbed, two: tuple[str, str]) -> None:
    client = WireClient(testbed.folder("one") / "hook.sock")
    client.send(wire.Hello(1, 1, wire.Accelerator.GPU))
    _, fds, _, _ = socket.recv_fds(client.socket, wire.RECORD_BYTES_MAX, 2)
    with pytest.raises(PermissionError):
        mmap.mmap(fds[0], 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for fd in fds:
        os.close(fd)
    client.close()


def test_the_clients_of_an_allocation_see_which_of_them_work(testbed: Testbed, two: tuple[str, str]) -> None:
    one, twin, rival = testbed.join("one"), testbed.join("one"), testbed.join("two")
    for client in (twin, rival):
        client.use(True)
    assert one.siblings() % 2 == 1
    assert twin.siblings() == rival.siblings() == 0
    one.use(True)
    assert rival.siblings() == 0, "another allocation's page"
    # One that dies at work is at work no more.
    twin.close()
    testbed.until(lambda status: len(share(status, "one").clients) == 1)
    assert one.siblings() % 2 == 0
    assert one.siblings() > 0


def test_a_client_that_cannot_say_so_is_taken_to_work_all_the_time(testbed: Testbed, two: tuple[str, str]) -> None:
    one, older = testbed.join("one"), testbed.connect("one")
    older.join(version=1)
    assert one.siblings() % 2 == 1
    older.close()
    testbed.until(lambda status: len(share(status, "one").clients) == 1)
    assert one.siblings() % 2 == 0


def test_an_answer_that_waits_for_the_driver_keeps_no_other_waiting_and_comes_though_it_says_nothing(
    testbed: Testbed, manager: Manager, calls: ManagerClient
) -> None:
    """Of a context that its client asked for and never made, on a model of which none was seen."""
    wanted = Allocation(id="small", device_ids=testbed.uuids[:1], request_percent=50, memory_mib=512)
    answers = calls.hold(wanted, wait_for_manager=False)
    next(answers)
    client = testbed.join("small")
    context = client.ask(wire.Reserve(1, 0, 0, wire.MemoryKind.CONTEXT))
    assert isinstance(context, wire.Reserved)
    assert context.granted
    os.kill(manager.process.pid, signal.SIGSTOP)
    os.waitpid(manager.process.pid, os.WUNTRACED)
    client.send(wire.MemoryQuery(2, 0))
    client.send(wire.Reserve(3, 512 * MIB, 0, PLAIN))
    client.send(wire.MemoryQuery(4, 0))
    os.kill(manager.process.pid, signal.SIGCONT)
    heard = [client.answer() for _ in range(3)]
    assert [each.number for each in heard if isinstance(each, wire.Reserved | wire.MemoryInfo)] == [2, 4, 3]
    assert isinstance(heard[2], wire.Reserved)
    assert heard[2].granted
    answers.close()
