"""Slices that clients get, and what they see and tell of each other."""

import fcntl
import mmap
import os
import socket

import pytest

from cuda_hook import wire
from edgeshare.contract.units import NS_PER_MS as MS
from tests.kit.manager.testbed import Testbed, share
from tests.kit.manager.wire_client import WireClient


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


@pytest.mark.parametrize("page", range(3), ids=["gate", "hints", "siblings"])
def test_no_page_is_cut_off_under_who_reads_it(testbed: Testbed, two: tuple[str, str], page: int) -> None:
    """Who read what lies beyond a file's end would be ended by a signal (mmap(2), SIGBUS)."""
    with WireClient(testbed.folder("one") / "hook.sock") as client:
        client.send(wire.Hello(wire.VERSION, wire.VERSION, wire.Accelerator.GPU))
        _, fds, _, _ = socket.recv_fds(client.socket, wire.RECORD_BYTES_MAX, 3)
        again = os.open(f"/proc/self/fd/{fds[page]}", os.O_RDWR)
        for fd in (fds[page], again):
            for size_bytes in (0, 1, 1 << 20):
                with pytest.raises(PermissionError):
                    os.ftruncate(fd, size_bytes)
            with pytest.raises(PermissionError):
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        with pytest.raises(PermissionError):
            os.truncate(f"/proc/self/fd/{fds[page]}", 0)
        for fd in (*fds, again):
            os.close(fd)


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
