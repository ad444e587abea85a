"""Every way in which a program finds the driver leads to the gate."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import HOOK, SUCCESS, Stage

DOORS = ["linked", "dlsym", "default", "next", "getproc", "getproc2", "getproc_ptsz"]


@pytest.mark.parametrize("door", DOORS)
def test_a_launch_waits_for_a_grant_through(door: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client(door).ready().start()
    stage.holds_until_granted(manager, client, "launch 1000")
    assert [interval.kind for interval in stage.executed()] == ["kernel"]


@pytest.mark.parametrize("how", ["ex", "cooperative"])
def test_every_kind_of_launch_waits_for_a_grant(how: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client("getproc2").ready().start()
    stage.holds_until_granted(manager, client, f"launch 1000 1 0 {how}")


@pytest.mark.parametrize("command", ["set", "setasync", "fetch"])
def test_copies_and_sets_wait_for_a_grant(command: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do("alloc plain 4096") == SUCCESS
    stage.holds_until_granted(manager, client, command)


def test_an_absent_driver_looks_absent(stage: Stage) -> None:
    """dlopen fails as it does without the hook, and nothing is found by name."""
    script = (
        "import ctypes\n"
        "try: ctypes.CDLL('libcuda.so.1')\n"
        "except OSError as error: print(error)\n"
        "try: ctypes.CDLL(None).cuInit\n"
        "except AttributeError as error: print(error)\n"
    )
    said = [
        subprocess.run(
            ["/usr/bin/python3", "-c", script],
            env={"PATH": os.environ["PATH"], **preload},
            check=True,
            text=True,
            capture_output=True,
        )
        for preload in ({}, {"LD_PRELOAD": str(HOOK)})
    ]
    assert "libcuda.so.1: cannot open shared object file" in said[0].stdout
    assert "undefined symbol: cuInit" in said[0].stdout
    assert [said[1].stdout, said[1].stderr] == [
        said[0].stdout.replace("/usr/bin/python3: undefined", f"{HOOK}: undefined")
        if str(HOOK) in said[1].stdout
        else said[0].stdout,
        "",
    ]


def test_a_program_without_cuda_is_left_alone(tmp_path: Path) -> None:
    result = subprocess.run(
        ["/bin/true"], env={"LD_PRELOAD": str(HOOK), "EDGESHARE_HOOK_LOG": str(tmp_path / "log")}, check=False
    )
    assert result.returncode == 0
    assert not (tmp_path / "log").exists()
