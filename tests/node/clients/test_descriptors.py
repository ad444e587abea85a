"""Descriptors that are passed to the manager, which has no use for any, and by it, where the kernel has had enough."""

import os
import re
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from bench.host import descriptors
from cuda_hook import wire
from edgeshare.contract.errors import Unavailable
from edgeshare.v1.allocations_pb2 import Allocation
from sharemgr.node.sockets.closer import FULL, PASSED_MAX
from tests.kit.manager.passing import OLDER_KERNEL, lingering, passes
from tests.kit.manager.testbed import EDGESHARE, Manager, Testbed, share
from tests.kit.manager.wire_client import WireClient
from tests.kit.processes.waiting import PATIENCE_S

OPEN_MAX = 256
FEW_RIGHTS = ("prlimit", f"--nofile={OPEN_MAX}", EDGESHARE)
if os.geteuid() == 0:
    FEW_RIGHTS = ("setpriv", "--bounding-set=-sys_resource,-sys_admin", *FEW_RIGHTS)

LOOK_S = 0.01
TRIED = 40
UNREAD_TRIED = 4
"""So often it is tried while the client reads nothing."""

HELLO = wire.encode(wire.Hello(wire.VERSION, wire.VERSION, wire.Accelerator.GPU))
REQUEST = wire.encode(wire.Request())


@pytest.fixture
def start(testbed: Testbed) -> Iterator[Callable[[Sequence[str]], Manager]]:
    """Starts a manager that lets in two clients of an allocation, and has two allocations of one GPU."""
    with ExitStack() as stack:

        def started(command: Sequence[str]) -> Manager:
            manager = testbed.manager("max_clients: 2\n", command)
            calls = stack.enter_context(testbed.calls())
            for name in ("good", "bad"):
                wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
                next(stack.enter_context(closing(calls.hold(wanted, wait_for_manager=False))))
            return manager

        yield started


def let_in(manager: Manager) -> bool:
    """Whether a connection of this process has all the descriptors that it takes: the last one is of the process."""
    found = ""
    for path in Path(f"/proc/{manager.process.pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            found += path.read_text()
    return f"\nPid:\t{os.getpid()}\n" in found


def until_closed(manager: Manager, most: int) -> None:
    """Waits until it has no more open."""
    deadline_s = time.monotonic() + PATIENCE_S
    while descriptors(manager.process.pid) > most:
        assert time.monotonic() < deadline_s, descriptors(manager.process.pid)
        time.sleep(LOOK_S)


def silent(client: WireClient) -> bool:
    """Whether nothing has been said to it."""
    looked = select.poll()
    looked.register(client.socket, select.POLLIN)
    return looked.poll(0) == []


def told_to_wait(client: WireClient) -> int:
    """How often it has been, of what it has not read yet; nothing else is said to it."""
    count = 0
    while not silent(client):
        assert client.answer() == wire.Wait()
        count += 1
    return count


def along_with_a_record(testbed: Testbed, client: WireClient, first: socket.socket, _: socket.socket) -> bool:
    return passes(client.socket, REQUEST, first)


def with_nothing_said(testbed: Testbed, client: WireClient, first: socket.socket, _: socket.socket) -> bool:
    return passes(client.socket, b"", first)


def behind_what_costs_the_connection(
    testbed: Testbed, client: WireClient, first: socket.socket, second: socket.socket
) -> bool:
    return passes(client.socket, REQUEST, first) and passes(client.socket, REQUEST, second)


def by_one_too_many(testbed: Testbed, client: WireClient, first: socket.socket, _: socket.socket) -> bool:
    testbed.connect("bad")
    return passes(testbed.connect("bad").socket, HELLO, first)


def as_it_hangs_up(testbed: Testbed, client: WireClient, first: socket.socket, second: socket.socket) -> bool:
    refused = not passes(client.socket, HELLO, first, second)
    client.close()
    return not refused


@pytest.mark.parametrize(
    "act",
    [along_with_a_record, with_nothing_said, behind_what_costs_the_connection, by_one_too_many, as_it_hangs_up],
)
@pytest.mark.parametrize("command", [(EDGESHARE,), OLDER_KERNEL], ids=["this kernel", "an older kernel"])
def test_nobody_waits_for_what_one_passes_in(
    testbed: Testbed,
    start: Callable[[Sequence[str]], Manager],
    command: Sequence[str],
    act: Callable[[Testbed, WireClient, socket.socket, socket.socket], bool],
) -> None:
    manager = start(command)
    good, bad = testbed.join("good"), testbed.join("bad")
    before = descriptors(manager.process.pid)
    with lingering() as first, lingering() as second:
        # All of it has come before the manager looks at any of it.
        manager.process.send_signal(signal.SIGSTOP)
        taken = act(testbed, bad, first, second)
        manager.process.send_signal(signal.SIGCONT)
        good.request()
        good.release(good.granted())
        good.request()
        good.granted()
        assert taken or command != OLDER_KERNEL
        if taken and act in (along_with_a_record, with_nothing_said, behind_what_costs_the_connection):
            assert bad.ended()
            assert share(testbed.status(), "bad").offences["descriptors"] == 1
    # What waited was let go, and nothing is left of it.
    until_closed(manager, before)


def test_of_one_whose_descriptors_cannot_be_closed_no_more_is_taken_in(
    testbed: Testbed, start: Callable[[Sequence[str]], Manager]
) -> None:
    manager = start(OLDER_KERNEL)
    good, bad, other = testbed.join("good"), testbed.join("bad"), testbed.join("bad")
    before = descriptors(manager.process.pid)
    with lingering() as first, ExitStack() as stack:
        rest = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(PASSED_MAX - 1)]
        # All of it is passed, and not ours any more, before the manager looks at any of it: who closes it last waits.
        manager.process.send_signal(signal.SIGSTOP)
        taken = passes(bad.socket, REQUEST, first, *rest)
        manager.process.send_signal(signal.SIGCONT)
        assert taken
        assert bad.ended()
        other.request()
        late = testbed.connect("bad")
        late.socket.send(HELLO)
        # What came before it has been looked at when somebody else has a slice, and a call is answered.
        good.request()
        good.release(good.granted())
        assert descriptors(manager.process.pid) > before + FULL
        assert not other.held
        assert silent(late)
    other.granted()
    late.welcomed()
    until_closed(manager, before + 2)


@pytest.mark.parametrize("version", [2, 3])
def test_who_cannot_be_passed_its_pages_waits_and_is_told_of(
    testbed: Testbed, start: Callable[[Sequence[str]], Manager], version: int
) -> None:
    """To itself that is said, too, where it knows the record: again when it has read that, and not before."""
    manager = start(FEW_RIGHTS)
    ours, theirs = socket.socketpair()
    with theirs, Path("/dev/null").open() as file:
        with ours:
            # Of all processes of this user together so many may be on their way.
            for _ in range(OPEN_MAX // PASSED_MAX + 2):
                socket.send_fds(ours, [b"x"], [file.fileno()] * PASSED_MAX)
        waiting = testbed.connect("good")
        waiting.send(wire.Hello(1, version, wire.Accelerator.GPU))
        for tried in (0, UNREAD_TRIED):
            testbed.until(lambda status, to=tried: share(status, "good").offences["not-welcomed"] > to + UNREAD_TRIED)
            # One may come as the one before it is read.
            assert told_to_wait(waiting) in ((1, 2) if version > 2 else (0,))
        assert "CAP_SYS_RESOURCE" in manager.log()
    waiting.welcomed()
    waiting.request()
    waiting.granted()


@contextmanager
def without_any(manager: Manager, but: int = 0) -> Iterator[None]:
    """The manager gets no descriptor more, ``but`` for so many, for as long as this is entered."""
    pid = manager.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = {int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()}
    free = [fd for fd in range(len(taken) + but + 1) if fd not in taken][but]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def test_out_of_descriptors_who_comes_waits_and_the_log_has_some_lines(testbed: Testbed) -> None:
    manager = testbed.manager("metrics_address: 127.0.0.1:0\n")
    port = int(re.search(r"metrics at http://127.0.0.1:(\d+)/", manager.log())[1])
    with testbed.calls() as calls, ExitStack() as stack:
        for name in ("good", "bad"):
            wanted = Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
            next(stack.enter_context(closing(calls.hold(wanted, wait_for_manager=False))))
        calls.status()  # whose connection stays
        waiting = testbed.connect("good")
        while not let_in(manager):
            time.sleep(LOOK_S)
        with without_any(manager):
            waiting.socket.send(HELLO)
            late = testbed.connect("bad")
            late.socket.send(HELLO)
            scrape = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            scrape.send(b"GET /healthz HTTP/1.0\r\n\r\n")
            # It is tried again ten times a second, as is whatever else could fill the log.
            deadline_s = time.monotonic() + PATIENCE_S
            while share(calls.status(), "good").offences["not-welcomed"] < TRIED:
                assert time.monotonic() < deadline_s, manager.log()
                time.sleep(LOOK_S)
            assert told_to_wait(waiting) in (1, 2)
            assert silent(late)
        waiting.welcomed()
        late.welcomed()
        assert scrape.recv(1 << 16).startswith(b"HTTP/1.1 200")
    lines = manager.log().splitlines()
    assert sum("Too many open files" in line for line in lines) in range(3, TRIED // 2), lines
    assert len(lines) < TRIED
    assert "Traceback" not in manager.log()


@pytest.mark.parametrize("left", [0, 2])
def test_out_of_descriptors_an_allocation_is_refused_and_nothing_of_it_is_left(testbed: Testbed, left: int) -> None:
    manager = testbed.manager()
    early, late = (Allocation(id=name, device_ids=testbed.uuids[:1], request_percent=50) for name in ("early", "late"))
    with testbed.calls() as calls, closing(calls.hold(early, wait_for_manager=False)) as held:
        next(held)
        calls.status()  # whose connection stays, as the other one's does
        with without_any(manager, but=left), pytest.raises(Unavailable):
            next(calls.hold(late, wait_for_manager=False))
        assert [each.allocation.id for each in calls.status().allocations] == ["early"]
        with closing(calls.hold(late, wait_for_manager=False)) as again:
            next(again)
            testbed.join("late").request()
    assert "Traceback" not in manager.log()
