"""Coral's EdgeTPUs, found in trees as the kernel has them."""

from pathlib import Path

import pytest

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.corals import AWAY_NS
from edgeshare.inventory.edgetpu import EdgeTpuInventory
from simgpu.trees import add_pcie_edgetpu, add_usb_edgetpu, remove_usb_edgetpu, write
from tests.kit.machine.clock import Clock

ADDRESS = "0000:03:00.0"


def look(root: Path) -> list[Device]:
    return EdgeTpuInventory(root).devices()


def test_one_on_the_pci_bus_is_known_by_its_address(tmp_path: Path) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0, numa_node=1)
    (device,) = look(tmp_path)
    assert (device.id, device.index, device.model) == (ADDRESS, 0, "Coral EdgeTPU PCIe")
    assert (device.accelerator, device.source) == (Accelerator.EDGETPU, "edgetpu")
    assert (device.paths, device.numa_node, device.memory_mib) == (("/dev/apex_0",), 1, 0)
    assert (device.healthy, device.cause) == (True, "")


def test_the_drivers_numbers_are_no_ids(tmp_path: Path) -> None:
    """They go to whichever is found first, and change at a reboot."""
    add_pcie_edgetpu(tmp_path, "0000:03:00.0", number=1)
    add_pcie_edgetpu(tmp_path, "0000:04:00.0", number=0)
    found = [(device.id, device.index, device.paths) for device in look(tmp_path)]
    assert found == [("0000:03:00.0", 0, ("/dev/apex_1",)), ("0000:04:00.0", 1, ("/dev/apex_0",))]


def test_its_temperature_is_the_drivers(tmp_path: Path) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0)
    inventory = EdgeTpuInventory(tmp_path)
    assert inventory.temperature_c(ADDRESS) == 52.3
    assert inventory.temperature_c("2-1") is None
    assert (inventory.memory_used_mib(ADDRESS), inventory.processes(ADDRESS)) == (0, None)


def test_one_without_a_driver_is_listed_with_that_cause(tmp_path: Path) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=None)
    (device,) = look(tmp_path)
    assert (device.id, device.healthy, device.paths) == (ADDRESS, False, ())
    assert device.cause == "its driver does not have it: load the modules gasket and apex"


@pytest.mark.parametrize(("status", "cause"), [("DEAD", "its driver says DEAD"), ("LAMED", "its driver says LAMED")])
def test_one_that_the_driver_gave_up_is_not_healthy(tmp_path: Path, status: str, cause: str) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0)
    write(tmp_path / "sys/class/apex/apex_0/status", f"{status}\n")
    (device,) = look(tmp_path)
    assert (device.healthy, device.cause) == (False, cause)


def test_one_whose_node_is_gone_is_not_healthy(tmp_path: Path) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0)
    (tmp_path / "dev/apex_0").unlink()
    (device,) = look(tmp_path)
    assert (device.healthy, device.cause, device.paths) == (False, "/dev/apex_0 is not there", ())


def test_one_on_usb_is_known_by_its_port_path(tmp_path: Path) -> None:
    add_usb_edgetpu(tmp_path, "2-1.4", number=5)
    (device,) = look(tmp_path)
    assert (device.id, device.model, device.paths) == ("2-1.4", "Coral EdgeTPU USB", ("/dev/bus/usb/002/005",))
    assert (device.accelerator, device.healthy) == (Accelerator.EDGETPU, True)


def test_other_devices_on_both_buses_are_nobodys(tmp_path: Path) -> None:
    write(tmp_path / "sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n")
    write(tmp_path / "sys/bus/pci/devices/0000:00:1f.0/device", "0x089a\n")
    write(tmp_path / "sys/bus/usb/devices/usb1/idVendor", "1d6b\n")
    write(tmp_path / "sys/bus/usb/devices/1-2/idVendor", "18d1\n")
    write(tmp_path / "sys/bus/usb/devices/1-2/idProduct", "4ee7\n")
    write(tmp_path / "sys/bus/usb/devices/1-3/idVendor", "1a6e\n")
    assert look(tmp_path) == []


def test_the_first_use_changes_ids_and_number_but_not_the_device(tmp_path: Path) -> None:
    clock = Clock()
    inventory = EdgeTpuInventory(tmp_path, clock)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    (before,) = inventory.devices()
    remove_usb_edgetpu(tmp_path, "2-1")
    clock.now_ns += AWAY_NS // 4
    assert inventory.devices() == [before]
    add_usb_edgetpu(tmp_path, "2-1", number=3, used=True)
    (after,) = inventory.devices()
    assert (after.id, after.healthy) == (before.id, True)
    assert (before.paths, after.paths) == (("/dev/bus/usb/002/002",), ("/dev/bus/usb/002/003",))


def test_one_that_stays_away_is_gone(tmp_path: Path) -> None:
    clock = Clock()
    inventory = EdgeTpuInventory(tmp_path, clock)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    add_usb_edgetpu(tmp_path, "2-2", number=3)
    inventory.devices()
    remove_usb_edgetpu(tmp_path, "2-1")
    clock.now_ns += AWAY_NS - 1
    assert [(device.id, device.index) for device in inventory.devices()] == [("2-1", 0), ("2-2", 1)]
    clock.now_ns += 1
    assert [(device.id, device.index) for device in inventory.devices()] == [("2-2", 0)]


def test_one_taken_off_the_pci_bus_is_gone_at_once(tmp_path: Path) -> None:
    inventory = EdgeTpuInventory(tmp_path, Clock())
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0)
    assert len(inventory.devices()) == 1
    (tmp_path / "sys/bus/pci/devices" / ADDRESS).unlink()
    assert inventory.devices() == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("sys/bus/usb/devices/2-1/devnum", b"five", "devnum says 'five', not a number"),
        ("sys/bus/usb/devices/2-1/devnum", b"", "devnum says '', not a number"),
        ("sys/bus/usb/devices/2-1/busnum", b"-7", "says bus -7, device 2"),
        ("sys/bus/usb/devices/2-1/busnum", b"9" * 5000, "not a number|says bus"),
        ("sys/bus/usb/devices/2-1/devnum", b"\xff\xd8\xff", "devnum holds no text"),
        ("sys/class/apex/apex_0/status", b"AL\x00IVE\x07", "status holds no plain line of text"),
        ("sys/class/apex/apex_0/status", b"A" * 100_000, "status is larger than 65536 bytes"),
        ("sys/bus/pci/devices/0000:03:00.0/numa_node", b"zero", "numa_node says 'zero', not a number"),
    ],
)
def test_what_cannot_be_made_out_is_said(tmp_path: Path, file: str, content: bytes, said: str) -> None:
    add_pcie_edgetpu(tmp_path, ADDRESS, number=0)
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(Unavailable, match=said) as raised:
        look(tmp_path)
    assert len(str(raised.value)) < 300


def test_other_peoples_broken_files_are_none_of_our_business(tmp_path: Path) -> None:
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    for port in ("1-1", "1-2"):
        (tmp_path / "sys/bus/usb/devices" / port).mkdir(parents=True)
    (tmp_path / "sys/bus/usb/devices/1-1/idVendor").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "sys/bus/usb/devices/1-2/idVendor").mkdir()
    assert [device.id for device in look(tmp_path)] == ["2-1"]


def test_half_a_device_is_none(tmp_path: Path) -> None:
    """It goes while it is looked at."""
    add_usb_edgetpu(tmp_path, "2-1", number=2)
    (tmp_path / "sys/bus/usb/devices/2-1/devnum").unlink()
    assert look(tmp_path) == []


def test_a_machine_without_any_has_none(tmp_path: Path) -> None:
    assert look(tmp_path) == []
