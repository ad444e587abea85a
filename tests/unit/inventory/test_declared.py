"""Devices that the configuration lists by hand."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.sources import DeclaredInventory
from simgpu.trees import write


def look(root: Path, *declared: dict[str, object]) -> list[Device]:
    config = InventoryConfig.model_validate({"declared": declared})
    return DeclaredInventory(tuple(device.declaration() for device in config.declared), root).devices()


NPU = {"id": "npu", "model": "Hailo-8", "accelerator": "edgetpu"}


def test_a_device_has_all_that_its_patterns_fit(tmp_path: Path) -> None:
    for node in ("hailo0", "hailo_ctl", "dma_heap/system"):
        write(tmp_path / "dev" / node, "")
    paths = ["/dev/hailo[0-9]", "/dev/hailo_ctl", "/dev/dma_heap/*"]
    (device,) = look(tmp_path, NPU | {"paths": paths, "numa_node": 1})
    assert (device.id, device.model, device.accelerator) == ("npu", "Hailo-8", Accelerator.EDGETPU)
    assert device.paths == ("/dev/hailo0", "/dev/hailo_ctl", "/dev/dma_heap/system")
    assert (device.healthy, device.numa_node, device.source, device.memory_mib) == (True, 1, "declared", 0)


def test_each_match_can_be_a_device(tmp_path: Path) -> None:
    for node in ("hailo0", "hailo1", "hailo_ctl"):
        write(tmp_path / "dev" / node, "")
    devices = look(tmp_path, NPU | {"each": "/dev/hailo[0-9]*", "paths": ["/dev/hailo_ctl"]})
    found = [(device.id, device.index, device.paths) for device in devices]
    assert found == [
        ("npu-hailo0", 0, ("/dev/hailo0", "/dev/hailo_ctl")),
        ("npu-hailo1", 1, ("/dev/hailo1", "/dev/hailo_ctl")),
    ]


def test_one_that_is_not_there_is_listed_with_that_cause(tmp_path: Path) -> None:
    (device,) = look(tmp_path, NPU | {"paths": ["/dev/hailo0", "/dev/hailo_ctl"]})
    assert (device.healthy, device.cause) == (False, "/dev/hailo0, /dev/hailo_ctl is not there")
    assert look(tmp_path, NPU | {"each": "/dev/hailo*"}) == []


def test_each_kind_is_numbered_by_itself(tmp_path: Path) -> None:
    gpu = {"model": "Some GPU", "memory_mib": 4096, "paths": ["/dev/dri/renderD128"]}
    devices = look(tmp_path, gpu | {"id": "a"}, NPU | {"paths": ["/dev/hailo0"]}, gpu | {"id": "b"})
    assert [(device.id, device.index) for device in devices] == [("a", 0), ("npu", 0), ("b", 1)]


def test_a_match_whose_name_is_none_for_a_device_is_said(tmp_path: Path) -> None:
    write(tmp_path / "dev" / ("x" * 80), "")
    with pytest.raises(Unavailable, match=r"inventory\.declared makes a device 'npu-xxx.*no name for one"):
        look(tmp_path, NPU | {"each": "/dev/x*"})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"paths": ["dev/hailo0"]}, "absolute path"),
        ({"paths": ["/**/hailo0"]}, r"no \*\*"),
        ({"paths": ["/dev/../etc/shadow"]}, r"no \.\."),
        ({"paths": ["/dev/\0"]}, "absolute path"),
        ({"paths": []}, "name the paths"),
        ({"id": "a::b", "paths": ["/dev/a"]}, "no name for a device"),
        ({"id": "-a", "paths": ["/dev/a"]}, "no name for a device"),
        ({"id": "a" * 60, "paths": ["/dev/a"]}, "no name for a device"),
        ({"accelerator": "gpu", "paths": ["/dev/a"]}, "needs memory_mib"),
        ({"paths": ["/dev/a"], "memory_mb": 5}, "memory_mb"),
    ],
)
def test_a_wrong_entry_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        InventoryConfig.model_validate({"declared": [NPU | wrong]})


def test_a_name_is_given_once() -> None:
    entry = NPU | {"paths": ["/dev/a"]}
    with pytest.raises(ValidationError, match="names npu twice"):
        InventoryConfig.model_validate({"declared": [entry, entry]})


def test_nothing_is_known_of_their_use(tmp_path: Path) -> None:
    inventory = DeclaredInventory((), tmp_path)
    assert inventory.devices() == []
    assert (inventory.memory_used_mib("npu"), inventory.processes("npu"), inventory.temperature_c("npu")) == (
        0,
        None,
        None,
    )
