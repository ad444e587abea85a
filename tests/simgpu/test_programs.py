"""What is started on a simulated machine ends with who started it, and says why when it ended early."""

import os
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from simgpu.stage.programs import READY, READY_S, Program, Programs, begin_together


def wait_for_end(pidfd: int) -> bool:
    """Whether the process ended; only a safety limit keeps it from waiting for ever."""
    ended = select.select([pidfd], [], [], 60)[0]
    os.close(pidfd)
    return bool(ended)


def interrupted(logs: Path, pidfds: list[int]) -> None:
    with Programs(logs) as programs:
        for name in ("one", "two"):
            program = programs.start(name, ["sleep", "600"], os.environ)
            pidfds.append(os.pidfd_open(program.pid))
        raise KeyboardInterrupt


def test_every_program_is_ended_also_when_something_goes_wrong(tmp_path: Path) -> None:
    pidfds: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path, pidfds)
    assert [wait_for_end(pidfd) for pidfd in pidfds] == [True, True]


def test_a_program_that_does_not_listen_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simgpu.stage.programs.END_S", 0.2)
    script = (
        "import pathlib, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "child.wait()\n"
    )
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    with Programs(tmp_path) as programs:
        stubborn = programs.start("stubborn", [sys.executable, "-c", script, str(ready)], os.environ)
        grandchild = os.pidfd_open(int(ready.read_text()))
    assert stubborn.status() == -signal.SIGKILL
    assert wait_for_end(grandchild)


def test_a_program_that_ended_early_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        failed = programs.start("failed", ["sh", "-c", "echo it broke >&2; exit 3"], os.environ)
        assert failed.status(wait_s=30) == 3
        with pytest.raises(Unavailable, match=r"failed ended with status 3: it broke") as caught:
            failed.check()
    assert str(tmp_path / "failed.log") in str(caught.value)
    assert "\n" not in str(caught.value)


def waits_to_be_told(programs: Programs, name: str, ready: str = ":") -> Program:
    """One that is ready after a command, and prints what it is told."""
    return programs.start(name, ["sh", "-c", f"{ready}; echo {READY}; read -r time; echo $time"], os.environ)


def test_nobody_is_told_when_to_begin_before_all_are_ready(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Programs(tmp_path) as programs, ThreadPoolExecutor(1) as beside:
        first = waits_to_be_told(programs, "first")
        second = waits_to_be_told(programs, "second", f"read -r line <{gate}")
        begin = beside.submit(begin_together, [first, second])
        first.wait_until_ready(time.monotonic() + READY_S)
        opened_ns = time.monotonic_ns()
        gate.write_text("open\n")
        begin_ns = begin.result()
        assert begin_ns > opened_ns
        for program in (first, second):
            assert program.status(wait_s=READY_S) == 0
            assert program.log.read_text().splitlines() == [READY, str(begin_ns)]


def test_one_that_ends_before_it_is_ready_is_an_error_that_says_what_it_said(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        programs_started = [
            waits_to_be_told(programs, "first"),
            waits_to_be_told(programs, "second", "echo no GPU; exit 1"),
        ]
        with pytest.raises(Unavailable, match="second ended with status 1: no GPU"):
            begin_together(programs_started)


def test_one_that_is_never_ready_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        silent = programs.start("silent", ["sleep", "600"], os.environ)
        with pytest.raises(Unavailable, match=r"silent is not ready after 60 s; its log: .*silent\.log"):
            silent.wait_until_ready(time.monotonic())


def test_one_that_ended_cannot_be_told(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        ended = programs.start("ended", ["sh", "-c", "echo I was here; exit 4"], os.environ)
        ended.status(wait_s=READY_S)
        with pytest.raises(Unavailable, match="ended ended with status 4: I was here"):
            ended.tell("1")


def test_one_that_waits_to_be_told_ends_when_it_will_not_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simgpu.stage.programs.END_S", READY_S)
    with Programs(tmp_path) as programs:
        waits = programs.start("waits", ["sh", "-c", f"trap '' TERM; echo {READY}; read -r time; exit 5"], os.environ)
        waits.wait_until_ready(time.monotonic() + READY_S)
    assert waits.status() == 5
