"""All inventories of a machine as one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import NoDriver, Unavailable
from edgeshare.contract.units import parse_unit_id, unit_id
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.interface import Inventory
from edgeshare.inventory.jetson import JetsonInventory
from edgeshare.inventory.sources import Inventories, Source, sources_of
from simgpu.trees import JETSONS, add_jetson, add_pcie_edgetpu, add_usb_edgetpu, remove_usb_edgetpu, write

SERIAL = "1421919056789"


def inventories(root: Path, **config: object) -> Inventories:
    """Those that read a tree; NVML would be asked of this machine."""
    with_all = InventoryConfig.model_validate({"sources": ["jetson", "edgetpu"], "root": root} | config)
    return Inventories(sources_of(with_all))


def failing(error: Exception) -> Callable[[], Inventory]:
    def fail() -> Inventory:
        raise error

    return fail


def test_every_kind_is_found_and_numbered_by_itself(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["orin-nano"], SERIAL)
    add_pcie_edgetpu(tmp_path, "0001:01:00.0", number=0)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    gpu = {"id": "extra", "model": "Some GPU", "memory_mib": 4096, "paths": ["/dev/nvmap"]}
    tpu = {"id": "npu", "model": "Hailo-8", "accelerator": "edgetpu", "paths": ["/dev/nvmap"]}
    machine = inventories(tmp_path, declared=[gpu, tpu])
    found = [(device.id, device.accelerator, device.index, device.source) for device in machine.devices()]
    assert found == [
        (SERIAL, Accelerator.GPU, 0, "jetson"),
        ("0001:01:00.0", Accelerator.EDGETPU, 0, "edgetpu"),
        ("2-1", Accelerator.EDGETPU, 1, "edgetpu"),
        ("extra", Accelerator.GPU, 1, "declared"),
        ("npu", Accelerator.EDGETPU, 2, "declared"),
    ]
    assert (machine.troubles, machine.absent) == ((), ())
    assert machine.temperature_c(SERIAL) == 41.5
    assert machine.temperature_c("0001:01:00.0") == 52.3
    assert machine.memory_used_mib(SERIAL) > 0
    assert machine.processes("npu") is None


def test_a_machine_without_any_has_none_and_no_trouble(tmp_path: Path) -> None:
    machine = inventories(tmp_path)
    assert machine.devices() == []
    assert (machine.troubles, machine.absent) == ((), ())
    assert (machine.temperature_c("x"), machine.memory_used_mib("x"), machine.processes("x")) == (None, 0, None)
    assert machine.busy_percent("x") is None


def test_no_driver_is_no_trouble_and_a_broken_one_is() -> None:
    absent = Inventories([Source("nvml", failing(NoDriver("none here")))])
    assert absent.devices() == []
    assert (absent.troubles, absent.absent) == ((), ("none here",))
    broken = Inventories([Source("nvml", failing(Unavailable("does not answer")))])
    assert broken.devices() == []
    assert (broken.troubles, broken.absent) == (("does not answer",), ())


def test_trouble_with_one_kind_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    machine = inventories(tmp_path)
    gpu, tpu = machine.devices()
    meminfo = (tmp_path / "proc/meminfo").read_text()
    write(tmp_path / "proc/meminfo", "MemTo")
    ill, still = machine.devices()
    assert still == tpu
    assert (ill.id, ill.memory_mib, ill.healthy) == (gpu.id, gpu.memory_mib, False)
    assert ill.cause == "/proc/meminfo has no line MemTotal: is /proc mounted here?"
    assert machine.troubles == (ill.cause,)
    write(tmp_path / "proc/meminfo", meminfo)
    assert machine.devices() == [gpu, tpu]
    assert machine.troubles == ()


def test_a_driver_that_goes_away_takes_no_device_off_the_list(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    there = True

    def open_jetson() -> Inventory:
        if not there:
            raise NoDriver("no driver here")
        return JetsonInventory(512, tmp_path)

    machine = Inventories([Source("jetson", open_jetson)])
    (before,) = machine.devices()
    machine.close()
    there = False
    (after,) = machine.devices()
    assert (after.id, after.healthy, after.cause) == (before.id, False, "no driver here")
    assert (machine.troubles, machine.absent) == (("no driver here",), ())
    assert (machine.memory_used_mib(SERIAL), machine.temperature_c(SERIAL)) == (0, None)


def test_a_device_that_is_gone_stays_listed_and_no_number_is_given_twice(tmp_path: Path) -> None:
    add_pcie_edgetpu(tmp_path, "0000:03:00.0", number=0)
    add_pcie_edgetpu(tmp_path, "0000:04:00.0", number=1)
    machine = inventories(tmp_path)
    assert [device.healthy for device in machine.devices()] == [True, True]
    (tmp_path / "sys/bus/pci/devices/0000:03:00.0").unlink()
    devices = {device.id: device for device in machine.devices()}
    gone = devices["0000:03:00.0"]
    assert (gone.healthy, gone.cause) == (False, "it is no longer there")
    assert devices["0000:04:00.0"].healthy
    assert len({device.index for device in devices.values()}) == 2


def test_a_usb_device_between_its_two_selves_is_never_ill(tmp_path: Path) -> None:
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    machine = inventories(tmp_path)
    health = [device.healthy for device in machine.devices()]
    remove_usb_edgetpu(tmp_path, "2-1")
    health += [device.healthy for device in machine.devices()]
    add_usb_edgetpu(tmp_path, "2-1", number=3, used=True)
    health += [device.healthy for device in machine.devices()]
    assert health == [True, True, True]


def test_an_id_is_shared_once(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    again = {"id": SERIAL, "model": "Some GPU", "memory_mib": 4096, "paths": ["/dev/nvmap"]}
    machine = inventories(tmp_path, declared=[again])
    (device,) = machine.devices()
    assert device.source == "jetson"
    assert machine.troubles[0].startswith(f"declared lists a device {SERIAL}, as jetson does: ")


def test_only_the_sources_that_are_asked_for_are_looked_at(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    assert [device.source for device in inventories(tmp_path, sources=["edgetpu"]).devices()] == ["edgetpu"]
    assert inventories(tmp_path, sources=[]).devices() == []


def test_the_reserve_is_the_configurations(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)

    def memory_mib(**config: object) -> int:
        (device,) = inventories(tmp_path, **config).devices()
        return device.memory_mib

    assert memory_mib(jetson_reserve_mib=0) - memory_mib(jetson_reserve_mib=700) == 700
    assert memory_mib(jetson_reserve_mib=0) - memory_mib() == 1024


def test_a_reserve_larger_than_the_machine_is_said(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    machine = inventories(tmp_path, jetson_reserve_mib=8192)
    assert machine.devices() == []
    assert machine.troubles == (
        "a reserve of 8192 MiB leaves nothing of this Jetson's 3964 MiB: lower inventory.jetson_reserve_mib",
    )


@pytest.mark.parametrize("wrong", [{"sources": ["amd"]}, {"jetson_reserve_mib": -1}, {"source": ["nvml"]}])
def test_a_wrong_configuration_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        InventoryConfig.model_validate(wrong)


def test_every_device_can_be_a_units_name(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"], SERIAL)
    add_pcie_edgetpu(tmp_path, "0000:03:00.0", number=0)
    add_usb_edgetpu(tmp_path, "2-1.4.1", number=2)
    devices: list[Device] = inventories(tmp_path).devices()
    assert len(devices) == 3
    assert [parse_unit_id(unit_id(device.id, 7)) for device in devices] == [(device.id, 7) for device in devices]
