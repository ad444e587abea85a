"""Where the hook finds its EdgeTPU allocation: what a container has mounted goes before what its environment says."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from edgeshare.contract.names import TPU_HOOK_DIR_IN_CONTAINER, TPU_HOOK_DIR_VARIABLE
from tests.kit.tpu.tpu_lab import APEX, HOOK, Lab, line, tell

KEEPS_OPEN = f"""
import os, sys
fd = os.open({APEX!r}, os.O_RDWR)
print("open", flush=True)
sys.stdin.readline()
"""


def script(mounted: Path, *command: str) -> str:
    """A shell script that runs a command where a folder is mounted as the one of a container's allocation."""
    return f"""set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir {TPU_HOOK_DIR_IN_CONTAINER}
mount --bind {shlex.quote(str(mounted))} {TPU_HOOK_DIR_IN_CONTAINER}
exec {shlex.join(command)}
"""


@pytest.fixture(scope="module", autouse=True)
def mounts() -> None:
    """Skips where this user cannot mount."""
    command = ["unshare", "--mount", "sh", "-c", script(Path("/tmp"), "true")]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"cannot mount here: {tried.stderr.strip()}")


def keeps_open(lab: Lab, mounted: Path, named: Path) -> "subprocess.Popen[str]":
    """A program that opens the device, where one folder is mounted and the variable names another. Hook and simulated
    kernel are loaded into it alone, not into what mounts."""
    variables = (f"LD_PRELOAD={HOOK}:{lab.driver}", f"{TPU_HOOK_DIR_VARIABLE}={named}")
    inside = script(mounted, "env", *variables, sys.executable, "-c", KEEPS_OPEN)
    return lab.start("mine", ["unshare", "--mount", "sh", "-c", inside], LD_PRELOAD="")


def joined(lab: Lab, process: "subprocess.Popen[str]") -> int:
    """How many clients the allocation has while the device is open."""
    assert line(process) == "open"
    count = len(lab.share("mine").clients)
    tell(process)
    return count


def test_a_variable_takes_no_program_out_of_the_share_of_its_container(lab: Lab) -> None:
    lab.manager()
    mounted = lab.allocate("mine", 30)
    assert joined(lab, keeps_open(lab, mounted, Path("/nowhere"))) == 1


def test_a_managers_own_folder_of_that_name_is_no_allocation(lab: Lab) -> None:
    lab.manager()
    folder = lab.allocate("mine", 30)
    assert joined(lab, keeps_open(lab, folder.parents[1], folder)) == 1
