"""The GPUs as NVML lists them, with a simulated library in the real one's place."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simgpu.native import BURN
from tests.kit.manager.testbed import GPU_MEMORY_MIB, Testbed
from tests.kit.processes.waiting import PATIENCE_S

LOOKS = """
import dataclasses, json, pathlib, sys
from edgeshare.inventory.nvml.nvml import NvmlInventory
for round in range(2):
    with NvmlInventory(pathlib.Path(sys.argv[1])) as inventory:
        for line in iter(sys.stdin.readline, "again\\n"):
            devices = inventory.devices()
            print(json.dumps([dataclasses.asdict(device) | {
                "used_mib": inventory.memory_used_mib(device.id),
                "busy_percent": inventory.busy_percent(device.id),
                "active": inventory.active(device.id),
                "pids": [process.pid for process in inventory.processes(device.id) or ()],
            } for device in devices]), flush=True)
"""
"""Looks once for each line that it gets, and opens the inventory again where the line says so."""


class Looker:
    """A process with an open inventory of a machine whose files are below ``root``."""

    def __init__(self, testbed: Testbed, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOKS, root],
            env=testbed.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def look(self, line: str = "look") -> list[dict[str, Any]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(line, file=self.process.stdin, flush=True)
        found = json.loads(self.process.stdout.readline())
        assert isinstance(found, list)
        return found

    def open_again(self) -> None:
        print("again", file=self.process.stdin, flush=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def looker(testbed: Testbed, tmp_path: Path) -> Any:
    # Not this machine's files: other tests make device nodes meanwhile.
    looker = Looker(testbed, tmp_path)
    yield looker
    looker.close()


def test_every_gpu_is_listed_with_what_a_share_needs(testbed: Testbed, looker: Looker) -> None:
    devices = looker.look()
    assert [device["id"] for device in devices] == testbed.uuids
    assert [device["index"] for device in devices] == [0, 1]
    for device in devices:
        assert device["model"] == "Tesla T4"
        assert device["memory_mib"] == GPU_MEMORY_MIB
        assert (device["healthy"], device["cause"]) == (True, "")
        assert (device["used_mib"], device["pids"], device["busy_percent"]) == (0, [], 0)


def test_a_process_is_listed_on_its_gpu(testbed: Testbed, looker: Looker) -> None:
    program = subprocess.Popen(
        [BURN, "--seconds", "600", "--device", "1"], env=testbed.environment, stdout=subprocess.DEVNULL
    )
    try:
        while not (devices := looker.look())[1]["pids"] or not devices[1]["active"]:
            assert program.poll() is None
        assert devices[1]["pids"] == [program.pid]
        assert devices[1]["used_mib"] > 0
        # It is the only one that uses it.
        assert list(devices[1]["active"]) == [str(program.pid)]
        assert 0 < devices[1]["active"][str(program.pid)] <= 100
        idle = devices[0]
        assert (idle["pids"], idle["active"], idle["used_mib"], idle["busy_percent"]) == ([], {}, 0, 0)
    finally:
        program.kill()
        program.wait(PATIENCE_S)


@pytest.mark.parametrize("xid", ["13", "31", "43"])
def test_a_programs_own_mistake_leaves_the_gpu_healthy(testbed: Testbed, looker: Looker, xid: str) -> None:
    looker.look()
    testbed.fault("xid", xid)
    assert [device["healthy"] for device in looker.look()] == [True, True]


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (("xid", "48", "--gpu", "1"), "XID 48"),
        (("xid", "62", "--gpu", "1"), "XID 62"),
        (("ecc", "--double", "--gpu", "1"), "uncorrectable memory error (double-bit ECC)"),
        (("lost", "--gpu", "1"), "the driver cannot read it: GPU is lost (nvmlDeviceGetHandleByIndex)"),
    ],
)
def test_a_fault_stays_with_its_gpu_and_its_cause(
    testbed: Testbed, looker: Looker, fault: tuple[str, ...], cause: str
) -> None:
    before = looker.look()
    testbed.fault(*fault)
    for _ in range(2):
        sound, faulty = looker.look()
        assert sound == before[0]
        assert (faulty["healthy"], faulty["cause"]) == (False, cause)
        assert (faulty["id"], faulty["memory_mib"]) == (before[1]["id"], before[1]["memory_mib"])


def test_an_inventory_can_be_opened_again(testbed: Testbed, looker: Looker) -> None:
    before = looker.look()
    testbed.fault("xid", "48")
    assert not looker.look()[0]["healthy"]
    looker.open_again()
    assert looker.look() == before
