"""What the driver of a node tells, and refuses, is among the findings: of the simulated one."""

import json
import os
from pathlib import Path

import pytest

from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.processes import forked

END_S = 60


def found(tmp_path: Path, subject: str) -> list[tuple[str, str]]:
    """State and text of all that is said of something."""
    command = ["doctor", "--root", str(tmp_path), "--json"]
    done = forked.run(command, END_S, {**os.environ, **variables(tmp_path / "machine")})
    assert done.stderr == ""
    said = [(each["state"], each["text"]) for each in json.loads(done.stdout) if each["subject"] == subject]
    assert done.returncode == int("wrong" in done.stdout)
    return said


@pytest.mark.parametrize("gpus", [1, 2])
def test_gpus_are_counted_by_model(tmp_path: Path, gpus: int) -> None:
    create(tmp_path / "machine", gpus=gpus, memory_mib=1024)
    model = Machine(tmp_path / "machine").gpus()[0].name
    assert found(tmp_path, "devices") == [("fine", f"{gpus} x {model} (gpu)")]
    assert found(tmp_path, "driver") == []


def test_what_a_virtual_gpus_driver_refuses_is_a_note(tmp_path: Path) -> None:
    create(tmp_path / "machine", gpus=1, memory_mib=1024, nvml="vgpu")
    refused = found(tmp_path, "driver")
    assert refused
    assert {state for state, _ in refused} == {"note"}
    assert len(found(tmp_path, "devices")) == 1


def test_where_a_card_has_no_driver_that_is_wrong(tmp_path: Path) -> None:
    for name, text in (("vendor", "0x10de\n"), ("class", "0x030200\n")):
        path = tmp_path / "sys/bus/pci/devices/0000:01:00.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    done = forked.run(["doctor", "--root", str(tmp_path), "--json"], END_S)
    (trouble,) = (each for each in json.loads(done.stdout) if each["subject"] == "devices")
    assert (done.returncode, trouble["state"]) == (1, "wrong")
    assert trouble["text"].startswith("no NVIDIA driver answers here: ")
    assert "install the driver" in trouble["text"]
