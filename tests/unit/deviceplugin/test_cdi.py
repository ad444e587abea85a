import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.devices.device_list import Devices
from deviceplugin.inject.cdi import Specs, qualified_name, spec
from deviceplugin.live_config import Settings
from deviceplugin.node_events import NodeEvents, Reason
from deviceplugin.units.ledger import Allocation, Ledger
from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import Unavailable
from tests.kit.processes.waiting import until_true

SAFETY_S = 10

GPU = Device("GPU-a", 0, "Simulated", 8192, paths=("/dev/null", "/dev/zero"))
OTHER = Device("GPU-b", 1, "Simulated", 8192)
TPU = Device("1-1.2", 0, "Coral", 0, accelerator=Accelerator.EDGETPU, paths=("/dev/full",))


class CdiNode:
    """What the specs are made of, and the folder that they are in. ``configure`` is a changed configuration file."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "cdi"
        self.devices = Devices()
        self.ledger = Ledger()
        self.node_events = NodeEvents()
        self._file = root / "deviceplugin.yaml"
        self._file.write_text("injection: {devices: cdi}\n")
        self.settings = Settings(self._file)
        self.specs = self.new_specs()

    def new_specs(self) -> Specs:
        """As of a plugin that has just started."""
        return Specs(self.folder, self.settings, self.devices, [self.ledger], self.node_events)

    def configure(self, text: str) -> None:
        self._file.write_text(text)
        self.settings.reload()

    def written(self) -> dict[str, Any]:
        """The specs in the folder, by file."""
        return {path.name: json.loads(path.read_text()) for path in self.folder.glob("*")}

    def names(self) -> set[str]:
        """What containers can ask for."""
        return {f"{each['kind']}={device['name']}" for each in self.written().values() for device in each["devices"]}


@pytest.fixture
def node(tmp_path: Path) -> CdiNode:
    return CdiNode(tmp_path)


def test_a_spec_gives_each_device_its_nodes_and_a_variable_of_its_own() -> None:
    assert spec("edge/gpu", [OTHER, GPU]) == {
        "cdiVersion": "0.3.0",
        "kind": "edge/gpu",
        "devices": [
            {
                "name": "GPU-a",
                "containerEdits": {
                    "env": ["EDGESHARE_GPU_0=GPU-a"],
                    "deviceNodes": [
                        {"path": "/dev/null", "permissions": "rw"},
                        {"path": "/dev/zero", "permissions": "rw"},
                    ],
                },
            },
            {"name": "GPU-b", "containerEdits": {"env": ["EDGESHARE_GPU_1=GPU-b"], "deviceNodes": []}},
        ],
    }


@pytest.mark.parametrize(("device_id", "version"), [("GPU-1", "0.3.0"), ("MIG-1", "0.3.0"), ("0000:01:00.0", "0.5.0")])
def test_a_spec_is_of_the_oldest_version_that_takes_its_names(device_id: str, version: str) -> None:
    assert spec("edge/gpu", [replace(GPU, id=device_id)])["cdiVersion"] == version


def test_each_kind_has_a_file_and_its_devices_the_names_that_containers_ask_for(node: CdiNode) -> None:
    node.devices.set([GPU, OTHER, TPU])
    node.specs.keep()
    assert node.names() == {qualified_name(device, node.settings.now.injection) for device in node.devices.now}
    assert set(node.written()) == {"edge-gpu.json", "edge-tpu.json"}


def test_a_device_that_goes_leaves_the_spec_and_the_last_one_takes_the_file_along(node: CdiNode) -> None:
    node.devices.set([GPU, OTHER])
    node.specs.keep()
    node.devices.set([OTHER])
    node.specs.keep()
    assert node.names() == {"edge/gpu=GPU-b"}
    node.devices.set([])
    # Also a plugin that has not written it itself.
    node.new_specs().keep()
    assert node.written() == {}


def test_a_node_that_is_not_there_is_left_out(node: CdiNode) -> None:
    node.devices.set([replace(GPU, paths=("/dev/null", "/dev/no-such-node"))])
    node.specs.keep()
    (device,) = node.written()["edge-gpu.json"]["devices"]
    assert device["containerEdits"]["deviceNodes"] == [{"path": "/dev/null", "permissions": "rw"}]


def test_nodes_are_looked_for_where_the_machines_files_are_seen(node: CdiNode, tmp_path: Path) -> None:
    # This container has a /dev/null; the machine whose files are below /host has not.
    (tmp_path / "host/dev").mkdir(parents=True)
    (tmp_path / "host/dev/apex_0").touch()
    node.configure(f"injection: {{devices: cdi}}\ninventory: {{root: {tmp_path}/host}}\n")
    node.devices.set([replace(TPU, paths=("/dev/null", "/dev/apex_0"))])
    node.specs.keep()
    (device,) = node.written()["edge-tpu.json"]["devices"]
    assert device["containerEdits"]["deviceNodes"] == [{"path": "/dev/apex_0", "permissions": "rw"}]


def test_a_spec_is_put_in_place_whole_for_everybody_to_read_and_only_where_it_differs(node: CdiNode) -> None:
    node.devices.set([GPU])
    old = os.umask(0o077)
    try:
        node.specs.keep()
    finally:
        os.umask(old)
    path = node.folder / "edge-gpu.json"
    first = path.stat()
    assert first.st_mode & 0o777 == 0o644
    node.specs.keep()
    # Not all of it: to read a file may change when it was read last.
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    path.write_text("{")
    with path.open() as reader:
        node.specs.keep()
        # Who reads meanwhile has the old file to its end.
        assert reader.read() == "{"
    assert node.written()["edge-gpu.json"]["kind"] == "edge/gpu"


def test_somebody_elses_kind_is_let_alone(node: CdiNode) -> None:
    node.configure("injection: {devices: cdi, cdi_gpu_kind: nvidia.com/gpu}\n")
    node.folder.mkdir()
    (node.folder / "nvidia.yaml").write_text("theirs")
    node.devices.set([GPU, TPU])
    node.specs.keep()
    assert {path.name for path in node.folder.iterdir()} == {"nvidia.yaml", "edge-tpu.json"}
    assert (node.folder / "nvidia.yaml").read_text() == "theirs"


def test_without_cdi_nothing_is_written_and_nobodys_file_removed(node: CdiNode) -> None:
    node.configure("injection: {devices: device-nodes}\n")
    node.devices.set([GPU])
    node.specs.keep()
    assert not node.folder.exists()
    node.folder.mkdir()
    (node.folder / "edge-gpu.json").write_text("{}")
    node.specs.keep()
    assert node.written() == {"edge-gpu.json": {}}


@pytest.mark.parametrize("later", ["{}", "injection: {devices: cdi, cdi_gpu_kind: nvidia.com/gpu}\n"])
def test_a_spec_stays_until_the_last_container_that_names_its_devices_is_over(node: CdiNode, later: str) -> None:
    node.devices.set([GPU, OTHER])
    node.specs.keep()
    node.ledger.put(Allocation("gpu-1", frozenset({"GPU-a::00"}), "", cdi_names=("edge/gpu=GPU-a",)))
    node.ledger.put(Allocation("gpu-2", frozenset({"GPU-b::00"}), "", cdi_names=("nvidia.com/gpu=GPU-b",)))
    node.configure(later)
    node.specs.keep()
    assert set(node.written()) == {"edge-gpu.json"}
    # A boot takes the folder along, and the containers start again.
    (node.folder / "edge-gpu.json").unlink()
    again = node.new_specs()
    again.keep()
    assert node.names() == {"edge/gpu=GPU-a", "edge/gpu=GPU-b"}
    node.ledger.drop("gpu-1")
    again.keep()
    assert node.written() == {}


def test_a_device_that_cannot_be_named_is_left_out(node: CdiNode) -> None:
    node.devices.set([GPU, replace(OTHER, id="b c")])
    node.specs.keep()
    assert node.names() == {"edge/gpu=GPU-a"}


async def test_a_folder_that_cannot_be_written_is_told_with_what_to_do_until_that_is_over(node: CdiNode) -> None:
    node.folder.touch()
    node.devices.set([GPU])
    with pytest.raises(Unavailable, match=r"edge/gpu cannot be written: .*needs .*/cdi of the node, writable"):
        node.specs.keep()
    node.specs.keep_or_tell()
    assert node.node_events.are_there(Reason.CDI_REFUSED)
    node.folder.unlink()
    node.specs.keep_or_tell()
    assert not node.node_events.are_there(Reason.CDI_REFUSED)


async def test_specs_follow_the_devices_and_the_configuration_until_the_end(node: CdiNode) -> None:
    stop = asyncio.Event()
    node.folder.touch()
    node.devices.set([GPU])
    task = asyncio.create_task(node.specs.run(stop))
    await until_true(lambda: node.node_events.are_there(Reason.CDI_REFUSED))
    node.folder.unlink()
    node.devices.set([GPU, TPU])
    await until_true(lambda: set(node.written()) == {"edge-gpu.json", "edge-tpu.json"})
    node.configure("{}")
    await until_true(lambda: node.written() == {})
    node.configure("injection: {devices: cdi}")
    await until_true(lambda: len(node.written()) == 2)
    stop.set()
    await asyncio.wait_for(task, SAFETY_S)
    assert len(node.written()) == 2
