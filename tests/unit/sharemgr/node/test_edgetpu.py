"""What the manager tells the hook of an EdgeTPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgeshare.contract.devices import Device
from edgeshare.contract.errors import InvalidRequest
from edgeshare.inventory.corals import PcieFacts, UsbFacts, devices_of
from sharemgr.node.machine.allocations import Allocation, Book
from sharemgr.node.serving import device_lines

PCIE, USB = devices_of(
    [PcieFacts("0000:03:00.0", "/dev/apex_0", True, "ALIVE", -1)], [UsbFacts("1-1.2", 1, 4, node_exists=True)]
)
GPU = Device("GPU-1", 0, "T4", 15360)


def test_a_node_is_named_and_a_device_on_the_usb_by_its_port() -> None:
    assert list(device_lines([PCIE, USB], Path("/sys"))) == [
        "device=/dev/apex_0",
        "usb-device=/sys/bus/usb/devices/1-1.2",
    ]


def test_what_is_listed_by_hand_is_known_by_its_paths_alone() -> None:
    listed = replace(USB, id="2-1", source="declared", paths=("/dev/npu0", "/dev/npu1"))
    assert list(device_lines([listed], Path("/sys"))) == ["device=/dev/npu0", "device=/dev/npu1"]


def test_an_allocation_is_of_one_kind_of_device() -> None:
    book = Book([PCIE, GPU])
    assert book.completed(Allocation("a", (PCIE.id,), 30)).memory_mib == 0
    with pytest.raises(InvalidRequest, match="several kinds"):
        book.completed(Allocation("a", (PCIE.id, GPU.id), 100))
