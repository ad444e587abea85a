"""Processes that outlive the script that started them are found again, and ended for certain."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes.daemons import Daemons
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import PATIENCE_S


@pytest.fixture
def daemons(tmp_path: Path) -> Iterator[Daemons]:
    made = Daemons(tmp_path)
    yield made
    made.stop("it", 0)


def pid_of(folder: Path) -> int:
    return int((folder / "pids/it").read_text().split()[0])


def test_another_script_finds_the_process_and_ends_it(daemons: Daemons, tmp_path: Path) -> None:
    daemons.start("it", ["/bin/sleep", "1000"])
    other = Daemons(tmp_path)
    assert other.runs("it")
    other.stop("it", PATIENCE_S)
    assert not daemons.runs("it")


def test_a_second_start_starts_nothing(daemons: Daemons, tmp_path: Path) -> None:
    daemons.start("it", ["/bin/sleep", "1000"])
    first = pid_of(tmp_path)
    daemons.start("it", ["/bin/sleep", "1000"])
    assert pid_of(tmp_path) == first


def test_one_that_ignores_the_polite_signal_is_gone_all_the_same(daemons: Daemons, tmp_path: Path) -> None:
    daemons.start("it", ["/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1000; done"])
    daemons.wait_until("it", lambda: daemons.log("it").read_text() == "deaf\n", PATIENCE_S)
    pid = pid_of(tmp_path)
    daemons.stop("it", 0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_got_the_number_of_one_that_is_gone_is_left_alone(daemons: Daemons, tmp_path: Path) -> None:
    daemons.start("it", ["/bin/sleep", "1000"])
    pid, ticks = (tmp_path / "pids/it").read_text().split()
    (tmp_path / "pids/it").write_text(f"{pid} {int(ticks) - 1}\n")
    assert not daemons.runs("it")
    daemons.stop("it", 0)
    os.kill(int(pid), signal.SIGKILL)  # Still there; this test is its parent.
    assert os.waitpid(int(pid), 0)[1] == signal.SIGKILL


def test_one_that_ends_before_it_is_ready_is_reported_with_what_it_said(daemons: Daemons) -> None:
    daemons.start("it", ["/bin/sh", "-c", "echo no such flag; exit 1"])
    with pytest.raises(NodeError, match="no such flag"):
        daemons.wait_until("it", lambda: False, PATIENCE_S)
