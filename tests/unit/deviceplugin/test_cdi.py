import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.cdi import Specs, qualified_name, spec
from deviceplugin.devices import Devices
from deviceplugin.injection_config import Injection
from edgeshare.devices import Accelerator, Device
from edgeshare.errors import Unavailable

SAFETY_S = 10

GPU = Device("GPU-a", 0, "Simulated", 8192, paths=("/dev/null", "/dev/zero"))
OTHER = Device("GPU-b", 1, "Simulated", 8192)
TPU = Device("1-1.2", 0, "Coral", 0, accelerator=Accelerator.EDGETPU, paths=("/dev/full",))


@pytest.fixture
def devices() -> Devices:
    return Devices()


@pytest.fixture
def config(tmp_path: Path) -> Injection:
    return Injection(devices="cdi", cdi_dir=tmp_path / "cdi")


@pytest.fixture
def specs(config: Injection, devices: Devices) -> Specs:
    return Specs(config, devices)


def written(config: Injection) -> dict[str, Any]:
    """The specs in the folder, by file."""
    return {path.name: json.loads(path.read_text()) for path in config.cdi_dir.glob("*")}


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


def test_each_kind_has_a_file_and_its_devices_the_names_that_containers_ask_for(
    config: Injection, devices: Devices, specs: Specs
) -> None:
    devices.set([GPU, OTHER, TPU])
    specs.keep()
    names = {f"{each['kind']}={device['name']}" for each in written(config).values() for device in each["devices"]}
    assert names == {qualified_name(device, config) for device in devices.now}
    assert set(written(config)) == {"edge-gpu.json", "edge-tpu.json"}


def test_a_device_that_goes_leaves_the_spec_and_the_last_one_takes_the_file_along(
    config: Injection, devices: Devices, specs: Specs
) -> None:
    devices.set([GPU, OTHER])
    specs.keep()
    devices.set([OTHER])
    specs.keep()
    assert [device["name"] for device in written(config)["edge-gpu.json"]["devices"]] == ["GPU-b"]
    devices.set([])
    specs.keep()
    assert written(config) == {}


def test_a_node_that_is_not_there_is_left_out(config: Injection, devices: Devices, specs: Specs) -> None:
    devices.set([replace(GPU, paths=("/dev/null", "/dev/no-such-node"))])
    specs.keep()
    (device,) = written(config)["edge-gpu.json"]["devices"]
    assert device["containerEdits"]["deviceNodes"] == [{"path": "/dev/null", "permissions": "rw"}]


def test_a_spec_is_put_in_place_whole_for_everybody_to_read_and_only_where_it_differs(
    config: Injection, devices: Devices, specs: Specs
) -> None:
    devices.set([GPU])
    old = os.umask(0o077)
    try:
        specs.keep()
    finally:
        os.umask(old)
    path = config.cdi_dir / "edge-gpu.json"
    first = path.stat()
    assert first.st_mode & 0o777 == 0o644
    specs.keep()
    assert path.stat() == first
    path.write_text("{")
    with path.open() as reader:
        specs.keep()
        # Who reads meanwhile has the old file to its end.
        assert reader.read() == "{"
    assert written(config)["edge-gpu.json"]["kind"] == "edge/gpu"


def test_somebody_elses_kind_is_let_alone(devices: Devices, tmp_path: Path) -> None:
    config = Injection(devices="cdi", cdi_dir=tmp_path, cdi_gpu_kind="nvidia.com/gpu")
    (tmp_path / "nvidia.yaml").write_text("theirs")
    devices.set([GPU, TPU])
    Specs(config, devices).keep()
    assert {path.name for path in tmp_path.iterdir()} == {"nvidia.yaml", "edge-tpu.json"}
    assert (tmp_path / "nvidia.yaml").read_text() == "theirs"


def test_a_device_that_cannot_be_named_is_left_out_and_said_so_once(
    config: Injection, devices: Devices, specs: Specs, caplog: pytest.LogCaptureFixture
) -> None:
    devices.set([GPU, replace(OTHER, id="b c")])
    specs.keep()
    specs.keep()
    assert [device["name"] for device in written(config)["edge-gpu.json"]["devices"]] == ["GPU-a"]
    assert caplog.text.count("left out of the CDI spec: the device id 'b c'") == 1


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path, devices: Devices) -> None:
    (tmp_path / "file").touch()
    devices.set([GPU])
    with pytest.raises(Unavailable, match=r"edge/gpu cannot be written: .*needs .*/file/cdi of the node"):
        Specs(Injection(devices="cdi", cdi_dir=tmp_path / "file/cdi"), devices).keep()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(SAFETY_S):
        while not true():  # noqa: ASYNC110 - a file tells of no change
            await asyncio.sleep(0.01)


async def test_specs_follow_the_devices_until_the_end_and_get_over_a_folder_that_is_in_the_way(
    config: Injection, devices: Devices, specs: Specs, caplog: pytest.LogCaptureFixture
) -> None:
    stop = asyncio.Event()
    config.cdi_dir.touch()
    devices.set([GPU])
    task = asyncio.create_task(specs.run(stop))
    await until(lambda: "cannot be written" in caplog.text)
    config.cdi_dir.unlink()
    devices.set([GPU, TPU])
    await until(lambda: len(written(config)) == 2)
    stop.set()
    await asyncio.wait_for(task, SAFETY_S)
    assert set(written(config)) == {"edge-gpu.json", "edge-tpu.json"}
