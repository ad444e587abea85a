"""Clients that are killed or stopped while they hold a slice: nobody waits for them."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from sharemgr.node.turns.settings import Settings
from tests.kit.manager.testbed import Testbed, share
from tests.kit.manager.wire_client import WireClient

DRAIN_GRACE_NS = Settings().drain_grace_ns
"""How long the manager waits for one that does not drain."""


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


def test_one_that_is_killed_or_stopped_is_not_waited_for_as_one_that_only_gives_nothing_back(
    testbed: Testbed, two: tuple[str, str], holders: Holders
) -> None:
    waits_ns: dict[int, list[int]] = {0: [], signal.SIGSTOP: [], signal.SIGKILL: []}
    # Of what ends the wait five times, the shortest: a machine has bad moments.
    for number in (0, *[signal.SIGSTOP, signal.SIGKILL] * 5):
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
