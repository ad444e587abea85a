"""A manager that comes while another serves the node, as an update's new pod does: it waits, ready to take over."""

import re
import select
import signal
import stat
import subprocess
import time
from http import HTTPStatus
from urllib.error import HTTPError
from urllib.request import urlopen

import grpc
import pytest

from edgeshare.contract.names import ALLOCATIONS_SOCKET
from edgeshare.v1.allocations_pb2 import AddAllocationRequest, Allocation
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from tests.kit.manager.busy import all_granted, burn, executed_until
from tests.kit.manager.testbed import Manager, Testbed
from tests.kit.processes.rights import only_root
from tests.kit.processes.waiting import PATIENCE_S

TAKES_OVER = "ready to take over"

UNFAILING = "failure_policy: closed\ngrace_s: 60\n"
"""Whoever executes something does so by a manager's grant."""

SOME_MS = 100
"""Many slices."""


class Second:
    """A manager that was started while there was one."""

    def __init__(self, testbed: Testbed, config: str = "") -> None:
        self.process: subprocess.Popen[str] = testbed.popen(*testbed.manager_arguments(config))
        self.said: list[str] = []
        """What its log has so far."""

    def until_said(self, text: str) -> str:
        """Waits for a line with this text."""
        stderr = self.process.stderr
        assert stderr is not None
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            line = stderr.readline()
            assert line, self.said
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(self.said)

    def until_ready(self) -> str:
        """What it prints when it serves."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends it; takes in all of its log."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert out == ""
        self.said += err.splitlines()
        return self.process.returncode


@pytest.fixture
def second(testbed: Testbed, manager: Manager) -> Second:
    """One that waits beside ``manager``."""
    second = Second(testbed)
    second.until_said(TAKES_OVER)
    return second


def page(address: str, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_says_once_whom_it_waits_for_and_the_first_goes_on(
    testbed: Testbed, manager: Manager, second: Second
) -> None:
    assert second.end() == 0
    (said,) = [line for line in second.said if TAKES_OVER in line]
    assert f"pid {manager.process.pid}" in said
    assert str(testbed.runtime_dir) in said
    assert len(testbed.status().devices) == 2


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_while_it_waits(second: Second, signal_name: str) -> None:
    assert second.end(signal.Signals[signal_name]) == 0


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_it_takes_over_when_the_first_is_gone(testbed: Testbed, manager: Manager, second: Second, how: str) -> None:
    wanted = Allocation(id="kept", device_ids=testbed.uuids[:1], request_percent=50, memory_mib=100)
    with grpc.insecure_channel(f"unix:{testbed.runtime_dir / ALLOCATIONS_SOCKET}") as channel:
        AllocationsStub(channel).AddAllocation(AddAllocationRequest(allocation=wanted))
    if how == "killed":
        manager.kill()
    else:
        manager.end()
    assert second.until_ready() == f"edgeshare sharemgr node: ready, 2 devices, 1 allocations, {testbed.runtime_dir}"
    testbed.join("kept")
    assert (testbed.runtime_dir / "manager.lock").read_text() == str(second.process.pid)


def test_one_after_the_other_takes_over(testbed: Testbed, manager: Manager) -> None:
    waiting = [Second(testbed) for _ in range(2)]
    for each in waiting:
        each.until_said(TAKES_OVER)
    manager.kill()
    outs = {each.process.stdout: each for each in waiting}
    (out,), _, _ = select.select(list(outs), [], [], PATIENCE_S)
    takes, waits = outs.pop(out), *outs.values()
    assert "ready" in takes.until_ready()
    assert waits.process.poll() is None
    takes.process.kill()
    assert "ready" in waits.until_ready()


def test_programs_are_granted_their_slices_by_the_next_manager(testbed: Testbed) -> None:
    first = testbed.manager(UNFAILING)
    names = ("30", "70")
    for name in names:
        burn(testbed, name, percent=int(name))
    testbed.until(all_granted(2))
    next_one = Second(testbed, UNFAILING)
    next_one.until_said(TAKES_OVER)
    assert first.end() == 0
    assert "2 devices" in next_one.until_ready()
    testbed.until(all_granted(2))
    executed_until(testbed.machine, names, SOME_MS)
    assert "unshared" not in first.log()


def test_it_answers_a_probe_that_it_is_ready_and_then_serves(testbed: Testbed, manager: Manager) -> None:
    second = Second(testbed, "metrics_address: 127.0.0.1:0\n")
    where = second.until_said("http://")
    (address,) = re.findall(r"http://(\S+)/readyz", where)
    second.until_said(TAKES_OVER)
    for path in ("/readyz", "/healthz"):
        status, text = page(address, path)
        assert status == HTTPStatus.OK
        assert f"pid {manager.process.pid}" in text
    status, text = page(address, "/metrics")
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    assert TAKES_OVER in text
    manager.end()
    assert "ready" in second.until_ready()
    (address,) = re.findall(r"http://(\S+)/metrics", second.until_said("/metrics"))
    assert page(address, "/readyz") == (HTTPStatus.OK, "ok\n")


@only_root
def test_nobody_else_can_hold_it_up_by_the_lock(testbed: Testbed) -> None:
    nobody = 65534
    testbed.runtime_dir.mkdir()
    lock = testbed.runtime_dir / "manager.lock"
    # As a version before this one made it.
    lock.touch(0o644)
    lock.write_text("12345678901234567890")
    manager = testbed.manager()
    assert lock.read_text() == str(manager.process.pid)
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    opened = subprocess.run(["cat", lock], user=nobody, capture_output=True, check=False, timeout=PATIENCE_S)
    assert b"Permission denied" in opened.stderr
