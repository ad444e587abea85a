"""``edgeshare simgpu``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from edgeshare.cli.simgpu import command
from edgeshare.contract.errors import EdgeshareError, InvalidRequest
from simgpu.create import create
from simgpu.machine import Machine
from tests.kit.machine.simulated import MIB, Simulated


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def state(directory: Path) -> dict[str, Any]:
    done = run("state", "--machine", directory, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_a_machine_is_made_shown_and_removed(tmp_path: Path) -> None:
    directory = tmp_path / "machine"
    made = run("create", "--machine", directory, "--gpus", 3, "--model", "a100", "--scheduling", "timeslice")
    assert made.exit_code == 0, made.output
    gpus = state(directory)["gpus"]
    assert [line.split()[1] for line in made.output.splitlines()] == [gpu["uuid"] for gpu in gpus]
    assert {(gpu["name"], gpu["memory_bytes"]) for gpu in gpus} == {("NVIDIA A100-SXM4-40GB", 40960 * MIB)}
    assert state(directory)["scheduling"] == "timeslice"
    assert state(directory)["pace"] is None
    assert run("destroy", "--machine", directory).exit_code == 0
    assert not directory.exists()


def test_whether_engines_overlap_is_shown(tmp_path: Path) -> None:
    assert run("create", "--machine", tmp_path / "one", "--scheduling", "timeslice", "--overlap").exit_code == 0
    assert state(tmp_path / "one")["overlap"] is True
    assert "timeslice, engines overlap" in run("state", "--machine", tmp_path / "one").output
    assert run("create", "--machine", tmp_path / "other").exit_code == 0
    assert state(tmp_path / "other")["overlap"] is False


def test_a_machines_pace_is_shown(tmp_path: Path) -> None:
    assert run("create", "--machine", tmp_path, "--pace", "jetson").exit_code == 0
    assert state(tmp_path)["pace"]["launch_ns"] == 15_000
    assert "fifo, pace jetson" in run("state", "--machine", tmp_path).output
    unknown = run("create", "--machine", tmp_path / "other", "--pace", "brisk")
    assert unknown.exit_code == 2
    assert "'workstation', 'jetson'" in unknown.output


def test_state_says_what_each_process_executed(simulated: Simulated) -> None:
    summary = simulated.burn("me", "--seconds", 0.1, "--mode", "sync", "--device", 1).result()
    (process,) = state(simulated.directory)["processes"]
    assert process["tag"] == "me"
    assert process["executed_ns"] == [0, summary["kernel_ns"]]
    assert process["entries"] == [0, summary["launches"]]
    assert not process["alive"]
    shown = run("state", "--machine", simulated.directory)
    assert shown.exit_code == 0
    assert "burn" in shown.output


def test_the_log_goes_on_from_a_cursor(simulated: Simulated) -> None:
    arguments = ("log", "--machine", simulated.directory, "--json")
    simulated.burn("first", "--seconds", 0.02, "--mode", "sync").result()
    first = json.loads(run(*arguments).output)
    simulated.burn("second", "--seconds", 0.02, "--mode", "sync").result()
    second = json.loads(run(*arguments, "--since", first["cursor"]).output)
    assert {each["tag"] for each in first["intervals"]} == {"first"}
    assert {each["tag"] for each in second["intervals"]} == {"second"}
    assert second["cursor"] == len(first["intervals"]) + len(second["intervals"])


def test_env_and_run_lead_a_program_to_the_machine(simulated: Simulated) -> None:
    lines = run("env", "--machine", simulated.directory).output
    script = f"{lines}\nexec {sys.executable} -c 'import ctypes; print(ctypes.CDLL(\"libcuda.so.1\").cuInit(0))'"
    found = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "0"
    code = "from edgeshare.cli import main; main()"
    arguments = ("simgpu", "run", "--machine", str(simulated.directory), "--tag", "t", "--", "sh", "-c", "exit 7")
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=False, timeout=60)
    assert done.returncode == 7


def test_a_machine_of_mixed_and_divided_gpus_is_made(tmp_path: Path) -> None:
    options = ["--gpus", "2", "--model", "t4", "--model", "a100", "--reserved-mib", "300", "--mig", "1", "1g.5gb"]
    made = run("create", "--machine", tmp_path, *options)
    assert made.exit_code == 0, made.output
    assert [line.split(" ", 2)[2] for line in made.output.splitlines()] == [
        "Tesla T4 15360 MiB",
        "NVIDIA A100-SXM4-40GB 40960 MiB",
    ]
    assert [gpu.used_bytes >> 20 for gpu in Machine(tmp_path).gpus()] == [300, 300]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"gpus": 3, "model": ["t4", "l4"]}, "2 models do not fit 3 GPUs"),
        ({"gpus": 1, "model": ["t4"], "mig": {0: ["1g.5gb"]}}, "Tesla T4 knows no MIG"),
        ({"gpus": 1, "model": ["a100"], "mig": {0: ["9g.1gb"]}}, "cannot be divided into 9g.1gb"),
        ({"gpus": 1, "model": ["a100"], "mig": {0: ["1g.5gb"] * 8}}, "name up to 7"),
        ({"gpus": 1, "model": ["a100"], "mig": {1: ["1g.5gb"]}}, "has none numbered 1"),
        ({"gpus": 1, "reserved_mib": 15360}, "the driver 15360"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(tmp_path: Path, plan: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        create(tmp_path, **plan)


def test_faults_are_injected(simulated: Simulated) -> None:
    where = ("--machine", simulated.directory, "--gpu", 1)
    assert run("fault", "xid", *where, 31).exit_code == 0
    assert run("fault", "ecc", *where).exit_code == 0
    assert run("fault", "ecc", *where, "--double").exit_code == 0
    assert run("fault", "lost", *where).exit_code == 0
    assert run("fault", "remap", *where).exit_code == 0
    assert run("fault", "remap", *where, "--failed").exit_code == 0
    assert run("fault", "temperature", *where, 95).exit_code == 0
    assert run("fault", "silence", *where).exit_code == 0
    assert run("fault", "silence", *where, "--over").exit_code == 0
    gpu = simulated.machine.gpus()[1]
    assert gpu.lost
    assert gpu.xids == (31, 79)
    assert (gpu.ecc_single, gpu.ecc_double) == (1, 1)
    assert (gpu.remap_pending, gpu.remap_failed, gpu.temperature_c) == (True, True, 95)
    assert run("reset", *where).exit_code == 0
    gpu = simulated.machine.gpus()[1]
    assert (gpu.lost, gpu.remap_pending, gpu.remap_failed) == (False, False, True)


def test_a_gpus_device_file_goes_and_comes_back(simulated: Simulated) -> None:
    where = ("--machine", simulated.directory, "--gpu", 1)
    files = simulated.directory / "dev"
    assert sorted(path.name for path in files.iterdir()) == ["nvidia0", "nvidia1"]
    assert run("fault", "file", *where).exit_code == 0
    assert [path.name for path in files.iterdir()] == ["nvidia0"]
    assert run("fault", "file", *where, "--back").exit_code == 0
    assert sorted(path.name for path in files.iterdir()) == ["nvidia0", "nvidia1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("create", "--gpus", "0"), "1 to 16 GPUs, not 0"),
        (("create", "--gpus", "17"), "1 to 16 GPUs, not 17"),
        (("create", "--memory-mib", "100"), "cannot have 100 MiB"),
        (("create", "--memory-mib", "-5"), "cannot have -5 MiB"),
        (("state",), "there is no machine in"),
        (("destroy",), "there is no machine in"),
        (("env",), "there is no machine in"),
        (("log",), "there is no machine in"),
        (("fault", "lost"), "there is no machine in"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments, "--machine", tmp_path / "none")
    assert isinstance(done.exception, EdgeshareError)
    assert says in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "none").exists()


def test_what_is_not_on_the_machine_is_said_in_one_line(simulated: Simulated) -> None:
    where = ("--machine", simulated.directory)
    for arguments, says in (
        (("create", *where), "already holds a machine"),
        (("fault", "xid", *where, "--gpu", 5, 31), "there is no GPU 5"),
        (("fault", "xid", *where, 0), "0 is no XID"),
        (("fault", "temperature", *where, 300), "300 °C is no temperature"),
        (("fault", "remap", *where, "--gpu", 2), "there is no GPU 2"),
        (("fault", "file", *where, "--gpu", 2), "there is no GPU 2"),
        (("reset", *where, "--gpu", 2), "there is no GPU 2"),
        (("log", *where, "--gpu", 2), "there is no GPU 2"),
        (("run", *where, "--", "/nonexistent/program"), "cannot be run"),
    ):
        done = run(*arguments)
        assert isinstance(done.exception, EdgeshareError)
        assert says in str(done.exception)


def test_a_file_that_is_no_machine_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machine").write_bytes(b"something else" * 1000)
    (tmp_path / "locks").touch()
    done = run("state", "--machine", tmp_path)
    assert isinstance(done.exception, EdgeshareError)
    assert "another version" in str(done.exception)


def test_wrong_usage_is_told_by_the_command_itself(tmp_path: Path) -> None:
    for arguments in (("create", "--model", "abacus"), ("create", "--scheduling", "lottery"), ("fault", "xid", "x")):
        assert run(*arguments, "--machine", tmp_path / "none").exit_code == 2


def test_a_log_that_lost_intervals_says_so(simulated: Simulated) -> None:
    simulated.burn("", "--seconds", 0.01, "--mode", "sync").result()
    summary = simulated.burn("", "--launches", 140_000, "--kernel-us", 0).result()
    machine = Machine(simulated.directory)
    intervals, cursor = machine.log(0)
    assert len(intervals) == 131_072
    assert cursor > summary["launches"]
    with pytest.raises(EdgeshareError, match="has lost"):
        machine.log(0, since=1)
