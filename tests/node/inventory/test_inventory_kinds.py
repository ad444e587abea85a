"""Machines that NVML describes in more ways than one: mixed, divided, with a NUMA node, with memory of the driver's
own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Any

import pytest

from edgeshare.inventory.config import InventoryConfig
from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.trees import JETSONS, add_jetson, add_mig_access, write
from tests.kit.processes.waiting import PATIENCE_S

LOOK = """
import dataclasses, json, sys
from pathlib import Path
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.sources import Inventories, sources_of
machine = Inventories(sources_of(InventoryConfig(root=Path(sys.argv[1]))))
for line in sys.stdin:
    devices = machine.devices()
    print(json.dumps({
        "devices": [dataclasses.asdict(device) for device in devices],
        "temperatures": [machine.temperature_c(device.id) for device in devices],
        "energies_mj": [machine.energy_mj(device.id) for device in devices],
        "busy_percent": [machine.busy_percent(device.id) for device in devices],
        "used_mib": [machine.memory_used_mib(device.id) for device in devices],
        "pids": [[process.pid for process in machine.processes(device.id) or ()] for device in devices],
        "troubles": machine.troubles,
        "absent": machine.absent,
    }), flush=True)
machine.close()
"""


class Node:
    """A machine whose GPUs are simulated and whose files are a tree of the test's own."""

    def __init__(self, root: Path) -> None:
        self.root = root / "root"
        self.directory = root / "machine"
        self._process: subprocess.Popen[str] | None = None

    def look(self, **environment: str) -> dict[str, Any]:
        """One more look of the same inventories."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LOOK, self.root],
                env={**os.environ, **variables(self.directory), **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("look", file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def end(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=PATIENCE_S)
            assert self._process.returncode == 0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.end()


def test_models_may_be_mixed(node: Node) -> None:
    create(node.directory, gpus=3, model=["t4", "l4", "t4"])
    answer = node.look()
    found = [(device["index"], device["model"], device["memory_mib"]) for device in answer["devices"]]
    assert found == [(0, "Tesla T4", 15360), (1, "NVIDIA L4", 23034), (2, "Tesla T4", 15360)]
    assert answer["temperatures"] == [30.0, 30.0, 30.0]
    assert (answer["troubles"], answer["absent"]) == ([], [])


def test_what_the_driver_keeps_for_itself_is_taken_off(node: Node) -> None:
    create(node.directory, gpus=1, model="t4", reserved_mib=450)
    answer = node.look()
    assert answer["devices"][0]["memory_mib"] == 15360 - 450
    assert answer["used_mib"] == [0]


def test_the_numa_node_is_sysfss(node: Node) -> None:
    create(node.directory, gpus=3)
    write(node.root / "sys/bus/pci/devices/0000:10:00.0/numa_node", "1\n")
    write(node.root / "sys/bus/pci/devices/0000:20:00.0/numa_node", "half-wr")
    assert [device["numa_node"] for device in node.look()["devices"]] == [1, -1, -1]


def test_device_nodes_are_those_below_the_root(node: Node) -> None:
    create(node.directory, gpus=2)
    for name in ("nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap30"):
        write(node.root / "dev" / name, "")
    first, second = node.look()["devices"]
    assert first["paths"] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert second["paths"] == ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"]


def test_mig_devices_are_devices_of_their_own(node: Node) -> None:
    create(node.directory, gpus=3, model=["t4", "a100", "a100"], mig={1: ["1g.5gb", "3g.20gb"]})
    for name in ("nvidia1", "nvidiactl"):
        write(node.root / "dev" / name, "")
    add_mig_access(node.root, minor=1, gpu_instance=1, compute_instance=0, capability=30)
    add_mig_access(node.root, minor=1, gpu_instance=2, compute_instance=0, capability=39)
    write(node.root / "sys/bus/pci/devices/0000:20:00.0/numa_node", "1\n")
    answer = node.look()
    t4, small, large, a100 = answer["devices"]
    uuids = [gpu.uuid for gpu in Machine(node.directory).gpus()]
    assert [t4["id"], a100["id"], small["parent"], large["parent"]] == [uuids[0], uuids[2], uuids[1], uuids[1]]
    assert [device["index"] for device in answer["devices"]] == [0, 1, 2, 3]
    assert small["id"].startswith("MIG-")
    assert small["id"] != large["id"]
    assert (small["model"], small["memory_mib"]) == ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864)
    assert (large["model"], large["memory_mib"]) == ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20096)
    assert (small["numa_node"], large["numa_node"]) == (1, 1)
    caps = "/dev/nvidia-caps/nvidia-cap"
    assert small["paths"] == ["/dev/nvidia1", "/dev/nvidiactl", f"{caps}30", f"{caps}31"]
    assert large["paths"] == ["/dev/nvidia1", "/dev/nvidiactl", f"{caps}39", f"{caps}40"]
    assert (answer["used_mib"], answer["pids"]) == ([0] * 4, [[]] * 4)
    # Of a MIG device the driver does not say it.
    assert answer["busy_percent"] == [0, None, None, 0]
    assert [type(energy_mj) for energy_mj in answer["energies_mj"]] == [int, NoneType, NoneType, int]
    assert answer["temperatures"] == [30.0] * 4
    assert a100["model"] == "NVIDIA A100-SXM4-40GB"


def test_a_fault_of_a_gpu_is_one_of_all_its_mig_devices(node: Node) -> None:
    create(node.directory, gpus=2, model="a100", mig={0: ["1g.5gb", "1g.5gb"]})
    assert [device["healthy"] for device in node.look()["devices"]] == [True] * 3
    Machine(node.directory).inject_xid(0, 48)
    found = [(device["healthy"], device["cause"]) for device in node.look()["devices"]]
    assert found == [(False, "XID 48"), (False, "XID 48"), (True, "")]


def test_a_lost_gpu_keeps_its_mig_devices_listed(node: Node) -> None:
    create(node.directory, gpus=1, model="a100", mig={0: ["1g.5gb", "2g.10gb"]})
    before = node.look()["devices"]
    Machine(node.directory).inject_lost(0)
    after = node.look()
    assert [device["id"] for device in after["devices"]] == [device["id"] for device in before]
    assert {device["cause"] for device in after["devices"]} == {
        "the driver cannot read it: GPU is lost (nvmlDeviceGetHandleByIndex)"
    }
    assert (after["used_mib"], after["temperatures"]) == ([0, 0], [None, None])
    assert after["energies_mj"] == [None, None]


def test_a_gpu_in_mig_mode_without_mig_devices_is_not_listed(node: Node) -> None:
    create(node.directory, gpus=2, model="a100", mig={1: []})
    assert [device["index"] for device in node.look()["devices"]] == [0]


def test_a_driver_that_does_not_answer_is_a_trouble(node: Node) -> None:
    create(node.directory)
    destroy(node.directory)
    answer = node.look()
    assert answer["devices"] == []
    (trouble,) = answer["troubles"]
    assert trouble.startswith("no NVIDIA driver answers here: the kernel module is not loaded")


@pytest.mark.parametrize(("vendor", "kind"), [("0x10de", "troubles"), ("0x8086", "absent")])
def test_no_library_is_a_trouble_where_there_is_a_gpu(node: Node, vendor: str, kind: str) -> None:
    write(node.root / "sys/bus/pci/devices/0000:01:00.0/vendor", f"{vendor}\n")
    write(node.root / "sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    answer = node.look(LD_LIBRARY_PATH="/nonexistent")
    if not answer["troubles"] and not answer["absent"]:
        pytest.skip("this machine has NVIDIA's library where the loader finds it")
    assert answer["devices"] == []
    assert "libnvidia-ml.so.1 is not in the library path" in answer[kind][0]


def test_a_gpu_without_memory_of_its_own_is_not_nvmls(node: Node) -> None:
    create(node.directory, gpus=3, model=["t4", "orin", "t4"])
    answer = node.look()
    assert [(device["index"], device["model"]) for device in answer["devices"]] == [(0, "Tesla T4"), (1, "Tesla T4")]
    assert answer["troubles"] == []


def test_a_jetson_needs_no_nvml(node: Node) -> None:
    add_jetson(node.root, JETSONS["agx-thor"])
    write(node.root / "sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
    write(node.root / "sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n")
    answer = node.look()
    assert [device["model"] for device in answer["devices"]] == ["NVIDIA Jetson AGX Thor"]
    assert answer["devices"][0]["healthy"]
    assert (answer["troubles"], len(answer["absent"])) == ([], 1)


def test_a_jetsons_gpu_is_numbered_after_those_of_nvml(node: Node) -> None:
    create(node.directory, gpus=2)
    add_jetson(node.root, JETSONS["agx-orin"])
    devices = node.look()["devices"]
    assert [(device["index"], device["source"]) for device in devices] == [(0, "nvml"), (1, "nvml"), (2, "jetson")]


def test_every_source_is_asked_by_default() -> None:
    assert set(InventoryConfig().sources) == {"nvml", "jetson", "edgetpu"}
