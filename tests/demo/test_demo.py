"""The demo as people run it: a simulated machine, a manager, four hooked programs."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edgeshare.cli.demo import LOGS_PREFIX, SCRATCH_PREFIX, SHARED_MEMORY
from edgeshare.cli.demo_plan import MIN_SECONDS, TOLERANCE_PERCENT, WORKLOADS
from edgeshare.contract.errors import EdgeshareError
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.native import BURN
from simgpu.readings import MADE

SAFETY_S = 120
"""Only to end a test that hangs."""

DEMO = [sys.executable, "-m", "edgeshare.cli", "demo"]


@contextmanager
def demo(*arguments: str, logs: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*DEMO, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(logs), "CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"},
    )
    try:
        have_watched(process)
        yield process
    finally:
        process.kill()
        process.wait()


def machines(process: subprocess.Popen[str]) -> Iterator[Path]:
    """The folder of the demo's machine, once there is one."""
    for path in SHARED_MEMORY.glob(f"{SCRATCH_PREFIX}{process.pid}-*/machine/machine"):
        yield path.parent


def have_watched(process: subprocess.Popen[str]) -> None:
    """Has what its driver notes fail the test (tests/conftest.py), from the machine's first moment on; returns when
    there is one, or the demo has ended without."""
    deadline_s = time.monotonic() + SAFETY_S
    while process.poll() is None:
        for directory in machines(process):
            sys.audit(MADE, directory)
            return
        assert time.monotonic() < deadline_s, "there was no machine"
        time.sleep(0.05)


def wait_for_workloads(process: subprocess.Popen[str]) -> Machine:
    """The demo's machine, once all workloads have run something on it."""
    deadline_s = time.monotonic() + SAFETY_S
    while time.monotonic() < deadline_s:
        assert process.poll() is None, process.communicate()
        for directory in machines(process):
            try:
                machine = Machine(directory)
            except EdgeshareError:  # it is just being made
                continue
            if {w.name for w in WORKLOADS} <= {p.tag for p in machine.processes() if sum(p.executed_ns)}:
                return machine
        time.sleep(0.05)
    raise AssertionError("the workloads did not begin")


def left_behind(process: subprocess.Popen[str], logs: Path) -> list[Path]:
    return [
        *SHARED_MEMORY.glob(f"{SCRATCH_PREFIX}{process.pid}-*"),
        *logs.glob(f"{LOGS_PREFIX}{process.pid}-*"),
    ]


@pytest.mark.measures
def test_who_is_due_more_by_the_rule_gets_more(tmp_path: Path) -> None:
    with demo("--seconds", "18", "--json", logs=tmp_path) as process:
        out, err = process.communicate(timeout=SAFETY_S)
    print(out, err)
    verdict = json.loads(out)
    assert set(verdict) == {"ok", "phases"}
    assert verdict["ok"] == (process.returncode == 0)
    misses = []
    for phase in verdict["phases"]:
        assert set(phase) == {"name", "clients"}
        assert [client["name"] for client in phase["clients"]] == [w.name for w in WORKLOADS]
        for client in phase["clients"]:
            assert set(client) == {"name", "request_percent", "expected_percent", "executed_percent"}
            misses.append(abs(client["executed_percent"] - client["expected_percent"]) > TOLERANCE_PERCENT)
        # The demo judges by the time of the clock, and no machine is at rest.
        assert in_order(phase["clients"], "executed_percent") == in_order(phase["clients"], "expected_percent")
    assert verdict["ok"] == (not any(misses))
    assert (left_behind(process, tmp_path) == []) == verdict["ok"], "logs stay where they are needed, and only there"
    expected = [
        {client["name"]: client["expected_percent"] for client in each["clients"]} for each in verdict["phases"]
    ]
    all_submit = {"red": 50, "green": 30, "blue": 20, "alone": 100}
    assert expected == [all_submit, {"red": 0, "green": 60, "blue": 40, "alone": 100}, all_submit]


def in_order(clients: list[dict[str, Any]], what: str) -> list[str]:
    """Their names, from the one that has least."""
    return [client["name"] for client in sorted(clients, key=lambda client: client[what])]


def test_where_stdout_is_no_terminal_plain_lines_tell_and_a_summary_ends_it(tmp_path: Path) -> None:
    with demo("--seconds", str(MIN_SECONDS), logs=tmp_path) as process:
        out, err = process.communicate(timeout=SAFETY_S)
    assert "\x1b" not in out
    shown = re.findall(
        r"(\w+) +gpu (\d)  request (\d+) %  limit 100 %  rule \d+ %  executed \d+\.\d %  "
        r"queued [\d.]+ ms  waiting [\d.]+ ms  memory, MiB (\d+) of \d+",
        out,
    )
    assert {(name, gpu, request) for name, gpu, request, _ in shown} == {
        (w.name, str(w.gpu), str(w.request_percent)) for w in WORKLOADS
    }
    # The allocation that each makes, and its context.
    assert all(int(memory) >= 512 for *_, memory in shown[-len(WORKLOADS) :])
    assert ("every workload got what the rule says" in out) == (process.returncode == 0), err


def test_a_demo_that_somebody_disturbs_fails_and_says_who_missed(tmp_path: Path) -> None:
    with demo("--seconds", "12", "--json", logs=tmp_path) as process:
        machine = wait_for_workloads(process)
        intruder = subprocess.Popen(
            [BURN, "--seconds", "60"],
            env=os.environ | variables(machine.directory),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            out, err = process.communicate(timeout=SAFETY_S)
        finally:
            intruder.kill()
            intruder.wait()
        assert process.returncode == 1
        verdict = json.loads(out)
        assert verdict["ok"] is False
        logs = re.search(rf"the logs are in (\S+{LOGS_PREFIX}\S+)", err)
        assert logs is not None, err
        assert (Path(logs[1]) / "manager.log").exists()


def test_ctrl_c_ends_everything_and_leaves_nothing(tmp_path: Path) -> None:
    with demo("--seconds", "60", logs=tmp_path) as process:
        machine = wait_for_workloads(process)
        (lock,) = machine.directory.parent.glob("run/manager.lock")
        pids = [p.pid for p in machine.processes() if p.alive] + [int(lock.read_text())]
        pidfds = [os.pidfd_open(pid) for pid in pids]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SAFETY_S)
        assert process.returncode != 0
        assert left_behind(process, tmp_path) == []
    assert len(pidfds) >= len(WORKLOADS) + 1
    assert [bool(select.select([pidfd], [], [], SAFETY_S)[0]) for pidfd in pidfds] == [True] * len(pidfds)
    for pidfd in pidfds:
        os.close(pidfd)


def test_a_workload_that_dies_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    with demo("--seconds", "60", "--json", logs=tmp_path) as process:
        machine = wait_for_workloads(process)
        (green,) = [p for p in machine.processes() if p.tag == "green"]
        os.kill(green.pid, signal.SIGKILL)
        out, err = process.communicate(timeout=SAFETY_S)
    assert process.returncode == 1
    assert out == ""
    log = re.search(r"green ended with status \d+.*?(\S+green\.log)", err)
    assert log is not None, err
    assert Path(log[1]).exists()


@pytest.mark.parametrize("seconds", ["0", "-5", "8"])
def test_a_demo_too_short_is_refused_before_anything_starts(tmp_path: Path, seconds: str) -> None:
    with demo(f"--seconds={seconds}", "--json", logs=tmp_path) as process:
        out, err = process.communicate(timeout=SAFETY_S)
        assert process.returncode == 1
        assert out == ""
        assert err.count("\n") == 1
        assert "too short" in err
        assert left_behind(process, tmp_path) == []
