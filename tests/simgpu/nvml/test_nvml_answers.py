"""What NVML answers on other platforms and with other drivers, as a machine's profile has it."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeshare.contract.errors import InvalidRequest
from simgpu.create import DRIVERS, create
from simgpu.native import LIBRARIES
from simgpu.nvml_profiles import ANSWERS, NVML_PROFILES, REFUSALS, SINCE, THIRD, NvmlProfile
from tests.kit.machine.simulated import Simulated

NVML = LIBRARIES / "libnvidia-ml.so.1"

PROCESSES = """
import pynvml
cu.start()
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
def seen(call):
    try:
        return [(each.pid == os.getpid(), each.usedGpuMemory) for each in call(device)]
    except pynvml.NVMLError as error:
        return str(error)
versions = [pynvml.nvmlDeviceGetComputeRunningProcesses_v2, pynvml.nvmlDeviceGetComputeRunningProcesses_v3]
result([seen(call) for call in versions])
"""

ASKED = """
import ctypes
library = ctypes.CDLL("libnvidia-ml.so.1")
assert library.nvmlInit_v2() == 0
from simgpu.machine import Machine
machine = Machine()
wrong = []
for name in sys.argv[1].split(","):
    machine.set_nvml_answer(name, "timeout")
    if getattr(library, name)(None, None, None, None, None) != 10:
        wrong.append(name)
    machine.set_nvml_answer(name, "as-ever")
    if name.startswith("nvmlDevice") and getattr(library, name)(None, None, None, None, None) == 10:
        wrong.append(name)
result(wrong)
"""


def exported() -> set[str]:
    lines = subprocess.run(["nm", "-D", "--defined-only", NVML], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" T (nvml\w+)", lines))


def test_every_function_answers_what_it_is_told_to(simulate: Callable[..., Simulated]) -> None:
    names = sorted(exported() - {"nvmlErrorString"})
    assert len(names) > 70
    wrong = []
    # A machine keeps no more than 48 of them.
    for begin in range(0, len(names), 40):
        simulated = simulate(gpus=1)
        script = f"sys.argv.append({','.join(names[begin : begin + 40])!r})\n"
        wrong += simulated.python(script + ASKED).result()
    assert wrong == []


def test_a_machine_keeps_so_many_answers_and_no_more(simulated: Simulated) -> None:
    for number in range(48):
        simulated.machine.set_nvml_answer(f"nvmlFunction{number}", "lost")
    simulated.machine.set_nvml_answer("nvmlFunction0", "as-ever")
    assert "nvmlFunction0" not in simulated.machine.nvml_answers
    with pytest.raises(InvalidRequest, match="nvmlOneMore: the machine keeps no more answers"):
        simulated.machine.set_nvml_answer("nvmlOneMore", "lost")
    with pytest.raises(InvalidRequest, match="'maybe': choose one of as-ever, "):
        simulated.machine.set_nvml_answer("nvmlInit", "maybe")
    assert len(simulated.machine.nvml_answers) == 47


@pytest.mark.parametrize("name", NVML_PROFILES)
def test_a_machines_profile_is_kept_with_the_drivers_version(simulate: Callable[..., Simulated], name: str) -> None:
    profile = NVML_PROFILES[name]
    machine = simulate(gpus=1, nvml=name).machine
    assert (machine.nvml, machine.nvml_answers) == (name, profile.answers)
    assert machine.driver_version == (profile.driver_version or DRIVERS[profile.cuda_version or "12.4"])


def test_profiles_name_functions_that_there_are_and_answers_that_they_give() -> None:
    assert {name for profile in NVML_PROFILES.values() for name in profile.answers} <= exported()
    assert {*REFUSALS, "as-ever", "no-memory", "wide"} == set(ANSWERS)
    for profile in NVML_PROFILES.values():
        listing = {name for name, answer in profile.answers.items() if answer in ("no-memory", "wide")}
        assert all("RunningProcesses" in name for name in listing)


def test_a_driver_lacks_what_came_later() -> None:
    assert dict(NVML_PROFILES["driver-470"].answers) == dict.fromkeys(SINCE, "not-exported")
    assert set(NVML_PROFILES["driver-535.98"].answers) == set(THIRD)
    assert NVML_PROFILES["driver-580"].answers == {}


def test_an_unknown_profile_is_refused_and_the_known_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no profile of NVML is called 'gpu': choose one of datacenter, geforce, "):
        create(tmp_path, nvml="gpu")
    with pytest.raises(InvalidRequest, match=r"driver-470 is of a driver with CUDA 11\.4, not 12\.4: leave the CUDA"):
        create(tmp_path, nvml="driver-470", cuda_version="12.4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("nvml", "second", "third"),
    [
        (None, [[True, 256 << 20]], [[True, 256 << 20]]),
        ("wsl2", [[True, None]], [[True, None]]),
        ("vgpu", "Not Supported", "Not Supported"),
        ("driver-470", [[True, 256 << 20]], "Function Not Found"),
        ("driver-535.98", [[True, 256 << 20]], "Function Not Found"),
    ],
)
def test_processes_are_listed_as_far_as_the_profile_goes(
    simulate: Callable[..., Simulated], nvml: str | None, second: Any, third: Any
) -> None:
    assert simulate(gpus=1, nvml=nvml).python(PROCESSES).result() == [second, third]


def test_in_the_larger_structure_only_the_first_process_is_where_it_is_looked_for(
    simulate: Callable[..., Simulated],
) -> None:
    simulated = simulate(gpus=1, nvml="driver-535.54.03")
    for _ in range(2):
        other = simulated.python("cu.start(); print('there', flush=True); time.sleep(60)")
        assert other.line() == "there"
    second, third = simulated.python(PROCESSES).result()
    assert [memory for _, memory in second] == [256 << 20] * 3
    # What is taken for the others is the first one's protected memory, and the numbers of processes.
    assert third[0][1] == 256 << 20
    assert third[1][1] != 256 << 20


def test_a_profile_of_ones_own_is_one(simulate: Callable[..., Simulated]) -> None:
    machine = simulate(gpus=1, nvml=NvmlProfile("mine", {"nvmlDeviceGetName": "no-permission"})).machine
    assert (machine.nvml, machine.nvml_answers) == ("mine", {"nvmlDeviceGetName": "no-permission"})
