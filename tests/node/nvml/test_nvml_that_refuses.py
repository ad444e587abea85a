"""A driver that refuses what the product asks of it: whatever it is, each part works with what is left, and says once
what it lacks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from edgeshare.inventory.nvml import nvml
from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.trees import add_mig_access
from tests.kit.processes.waiting import PATIENCE_S

PROGRAM = "tests.kit.manager.asks_nvml"

NEEDED = {
    "nvmlInitWithFlags",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
}
"""Without these no GPU is known; nor without both that tell its memory."""

BOTH_MEMORIES = "nvmlDeviceGetMemoryInfo_v2,nvmlDeviceGetMemoryInfo"

OF_NO_GPU = {
    "nvmlInitWithFlags",
    "nvmlShutdown",
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlDeviceGetCount_v2",
    "nvmlEventSetCreate",
    "nvmlEventSetFree",
    "nvmlEventSetWait_v2",
}
"""What they say is no sign of a GPU that is lost."""

OF_THE_MIG_DEVICES = {"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"}
"""Without these a GPU in MIG mode has none."""

AT_EACH_LOOK = {
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMigDeviceHandleByIndex",
    "nvmlDeviceGetGpuInstanceId",
    "nvmlDeviceGetComputeInstanceId",
}
"""What whoever lists a machine's GPUs asks of each, whenever it does."""

SECOND_LISTS = "nvmlDeviceGetComputeRunningProcesses_v2"
THIRD_LISTS = "nvmlDeviceGetComputeRunningProcesses_v3"

NO_MATTER = {"nvmlShutdown", "nvmlEventSetFree", "nvmlEventSetWait_v2", THIRD_LISTS}
"""Nothing is lacking without the first two; a wait that times out is no refusal; the last is asked where the second is
refused."""


class Driver:
    """Of a machine with a GPU, and one in MIG mode."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "root"
        create(folder / "machine", gpus=2, model=["t4", "a100"], mig={1: ["1g.5gb", "3g.20gb"]})
        add_mig_access(self._root, minor=1, gpu_instance=1, compute_instance=0, capability=30)
        self._environment = {**os.environ, **variables(folder / "machine")}
        (sound,) = self.ask()
        self.sound: dict[str, Any] = sound["found"]
        # Some are asked only in another's place.
        self.asked: set[str] = {name for each in [sound, *self.ask(SECOND_LISTS)] for name in each["called"]}

    def ask(self, *names: str) -> list[dict[str, Any]]:
        done = subprocess.run(
            [sys.executable, "-m", PROGRAM, self._root, *names],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("refusing")
    yield Driver(folder)
    destroy(folder / "machine")


@pytest.fixture(scope="module")
def answers(driver: Driver) -> list[dict[str, Any]]:
    """Of each function that the product calls, with each refusal, from the start and after a look."""
    return driver.ask(*sorted(driver.asked), BOTH_MEMORIES)


def what(answer: dict[str, Any]) -> str:
    return f"{answer['names']}, {answer['refusal']}{', later' if answer['later'] else ''}"


def plain(name: str) -> str:
    """As the binding calls it."""
    return name.removesuffix("_v2").removesuffix("_v3")


def needed(answer: dict[str, Any]) -> bool:
    return len(answer["names"]) > 1 or answer["names"][0] in NEEDED


def lost(answer: dict[str, Any]) -> bool:
    """Whether a GPU says that it is lost."""
    return answer["refusal"] == "lost" and answer["names"][0] not in OF_NO_GPU


def test_no_refusal_is_a_fault_of_ours(driver: Driver, answers: list[dict[str, Any]]) -> None:
    assert {answer["names"][0] for answer in answers} == driver.asked
    assert len(driver.asked) > 25
    assert [answer["traceback"] for answer in answers if "traceback" in answer] == []


def test_each_function_that_the_product_names_is_among_those_that_are_refused(driver: Driver) -> None:
    folder = Path(nvml.__file__).parent
    named = {name for file in folder.glob("*.py") for name in re.findall(r"pynvml\.(nvml[A-Z]\w+)", file.read_text())}
    functions = {plain(name) for name in named if callable(getattr(pynvml, name))}
    assert len(functions) >= 30
    assert functions - {"nvmlInit"} <= {plain(name) for name in driver.asked}


def test_every_gpu_is_there_without_what_is_no_need(driver: Driver, answers: list[dict[str, Any]]) -> None:
    everything = {device[0] for device in driver.sound["devices"]}
    for answer in answers:
        if needed(answer) or lost(answer) or answer["names"][0] in {*OF_THE_MIG_DEVICES, "nvmlDeviceGetMigMode"}:
            continue
        found = answer["found"]
        assert {device[0] for device in found["devices"]} == everything, what(answer)
        assert all(device[1] for device in found["devices"]), what(answer)
        assert found["health"] == driver.sound["health"], what(answer)
        assert [card[0] for card in found["cards"]] == [card[0] for card in driver.sound["cards"]], what(answer)
        assert [each[0] for each in found["usage"]] == [each[0] for each in driver.sound["usage"]], what(answer)


def test_what_a_gpu_told_once_stays(driver: Driver, answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        kept = not needed(answer) and not lost(answer) and answer["names"][0] not in OF_THE_MIG_DEVICES
        if answer["later"] and kept:
            assert answer["found"]["devices"] == driver.sound["devices"], what(answer)
            assert answer["found"]["cards"] == driver.sound["cards"], what(answer)


def test_a_gpu_that_does_not_say_whether_it_is_in_mig_mode_is_taken_not_to_be(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        if answer["names"] == ["nvmlDeviceGetMigMode"] and not answer["later"] and not lost(answer):
            assert [device[1] for device in answer["found"]["devices"]] == [True, True], what(answer)
            assert [card[2] for card in answer["found"]["cards"]] == [0, 0], what(answer)


def test_a_gpu_that_cannot_be_had_is_said_with_the_function_that_refused(answers: list[dict[str, Any]]) -> None:
    told = 0
    for answer in answers:
        name = answer["names"][0]
        of_a_gpu = name in AT_EACH_LOOK or (name.endswith("EventTypes") and not answer["later"])
        integrated = len(answer["names"]) > 1 and answer["refusal"] == "not-supported"
        if not of_a_gpu or integrated or not (needed(answer) or lost(answer)):
            continue
        told += 1
        said = [*answer["log"], *(device[2] for device in answer["found"]["devices"])]
        assert any(plain(name) in line for line in said), (what(answer), said)
    assert told >= 40


def test_what_is_lacking_is_said_once(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        assert len(answer["log"]) == len(set(answer["log"])), (what(answer), answer["log"])
        assert len(answer["log"]) < 12, (what(answer), answer["log"])
        name = answer["names"][0]
        if answer["refusal"] in ("unknown", "timeout") and not needed(answer) and name not in NO_MATTER:
            assert any(plain(name) in line for line in answer["log"]), (what(answer), answer["log"])


def test_what_many_gpus_do_not_have_is_not_told_of(driver: Driver) -> None:
    quiet = ("nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows")
    answers = [answer for answer in driver.ask(*quiet) if answer["refusal"] in ("not-supported", "not-exported")]
    assert [answer["log"] for answer in answers] == [[]] * 4 * len(quiet)
