"""A driver that says what cannot be: it is said once, in a line, and the rest goes on; whoever asks."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.trees import add_mig_access
from tests.kit.manager.lying_nvml import LIES
from tests.kit.processes.waiting import PATIENCE_S

PROGRAM = "tests.kit.manager.lying_nvml"

Answer = dict[str, Any]

NO_COUNT = {"four billion GPUs"}
NO_GPU = {
    "more memory than 64 bits hold",
    "no memory",
    "a UUID that is no text",
    "a UUID that is empty",
    "a UUID of several lines",
    "a UUID that is a path",
}
"""Of these lies no GPU can be made."""

OTHER_GPUS = {"no GPU", "one GPU fewer", "one UUID for all", "a UUID that is another each time"}
"""These are about which there are, and may be so."""

MAY_BE_SO = {*OTHER_GPUS, "a name that is no text", "a name of several lines", "a clock that was set back"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Answer]]:
    """By the lie; of none, what is so."""
    folder = tmp_path_factory.mktemp("lying")
    root = folder / "root"
    create(folder / "machine", gpus=2, model=["t4", "a100"], mig={1: ["1g.5gb", "3g.20gb"]})
    add_mig_access(root, minor=1, gpu_instance=1, compute_instance=0, capability=30)
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, root],
        env={**os.environ, **variables(folder / "machine")},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    yield {line["lie"]: line for line in lines}
    destroy(folder / "machine")


def test_no_lie_is_a_fault_of_ours(answers: dict[str, Answer]) -> None:
    assert answers.keys() == {"", *LIES}
    assert [answer["traceback"] for answer in answers.values() if "traceback" in answer] == []


@pytest.mark.parametrize("lie", sorted(LIES.keys() - NO_COUNT - NO_GPU - OTHER_GPUS))
def test_of_what_is_no_need_the_rest_goes_on(answers: dict[str, Answer], lie: str) -> None:
    sound, found = answers[""]["found"], answers[lie]["found"]
    assert [device[0] for device in found["devices"]] == [device[0] for device in sound["devices"]]
    assert all(device[1] for device in found["devices"])
    assert found["health"] == sound["health"]
    assert [card[:2] for card in found["cards"]] == [card[:2] for card in sound["cards"]]
    assert [each[0] for each in found["usage"]] == [each[0] for each in sound["usage"]]
    numbers = [number for each in found["told"] for number in each if number is not None]
    assert all(0 <= number < 1 << 53 for number in numbers), found["told"]


@pytest.mark.parametrize("lie", sorted(NO_GPU))
def test_a_gpu_that_cannot_be_so_is_left_out_and_said(answers: dict[str, Answer], lie: str) -> None:
    answer = answers[lie]
    assert (answer["found"]["devices"], answer["found"]["cards"]) == ([], [])
    assert sum("is left out" in line for line in answer["log"]) == 2, answer["log"]


def test_so_many_gpus_as_there_cannot_be_are_none_and_said(answers: dict[str, Answer]) -> None:
    found = answers["four billion GPUs"]["found"]
    for name in ("devices", "health", "cards", "usage"):
        assert "4294967295 GPUs" in found[name]


@pytest.mark.parametrize("lie", sorted(LIES))
def test_each_is_said_once_in_a_line(answers: dict[str, Answer], lie: str) -> None:
    log = answers[lie]["log"]
    assert len(log) == len(set(log)), log
    assert len(log) < 12, log
    assert all(line.isprintable() for line in log), log
    called = LIES[lie][0].removesuffix("_v2").removesuffix("_v3")
    found = json.dumps(answers[lie]["found"])
    assert lie in MAY_BE_SO or any(called in line for line in [*log, found]), log


def test_who_works_is_seen_to_again_after_the_drivers_clock_was_set_back(answers: dict[str, Answer]) -> None:
    active = answers["a clock that was set back"]["found"]["active"]
    devices = len(answers[""]["found"]["devices"])
    looks = [active[first : first + devices] for first in range(0, len(active), devices)]
    assert looks == [[[1]] * devices, [[]] * devices, [[1]] * devices]
