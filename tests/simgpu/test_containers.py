"""A machine between pid namespaces, as containers have them."""

import os
import shutil
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.kit.machine.simulated import MIB, Simulated

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False, timeout=60)
    if tried.returncode != 0:
        pytest.skip(f"no pid namespace can be made here: {tried.stderr.strip()}")


HOLDS = (
    'from tests.kit.machine.driver_calls import *; import time; cu.start(); print("holds", flush=True); time.sleep(60)'
)
USERS = """
import pynvml as nv
nv.nvmlInit()
zero = nv.nvmlDeviceGetHandleByIndex(0)
result([[each.pid, each.usedGpuMemory >> 20] for each in nv.nvmlDeviceGetComputeRunningProcesses(zero)])
"""


def in_container(simulated: Simulated, script: str, tag: str):
    return simulated.start(*UNSHARE, "python3", "-c", script, SIMGPU_TAG=tag)


def test_the_host_sees_a_containers_pid_as_its_own(simulated: Simulated) -> None:
    program = in_container(simulated, HOLDS, "inside")
    assert program.line() == "holds"
    ((pid, memory_mib),) = simulated.python(USERS).result()
    assert memory_mib == 256
    assert b"driver_calls" in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert simulated.process("inside").pid == pid
    os.kill(pid, signal.SIGKILL)
    simulated.until(lambda: not simulated.process("inside").alive)
    assert simulated.machine.gpus()[0].used_bytes == 0


def test_containers_with_the_same_pids_do_not_take_each_other_for_dead(simulated: Simulated) -> None:
    programs = [in_container(simulated, HOLDS, f"n{number}") for number in range(3)]
    assert [program.line() for program in programs] == ["holds"] * 3
    inside = """
from tests.kit.machine.driver_calls import *
cu.start()
result(cu.memory()[0])
"""
    free = in_container(simulated, inside, "last").result()
    assert free == (2048 - 4 * 256) * MIB
    assert len(simulated.python(USERS).result()) == 3


def test_work_of_two_containers_is_one_after_the_other(simulated: Simulated) -> None:
    script = """
from tests.kit.machine.driver_calls import *
cu.start()
function = cu.function()
for _ in range(50):
    cu.launch(function, 2_000_000)
    cu.ok("cuCtxSynchronize")
result(True)
"""
    programs = [in_container(simulated, script, tag) for tag in "ab"]
    assert all(program.result() for program in programs)
    log = simulated.log()
    assert len(log) == 100
    assert all(first.end_ns <= second.begin_ns for first, second in pairwise(log))
