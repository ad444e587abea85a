"""What is made of a driver's facts about its GPUs."""

from dataclasses import replace

import pytest

from edgeshare.inventory.gpus import Gpu, Partition, access_files, capability_minor, devices_of, nodes_of, pci_folder

GIB = 1 << 30
CONTROL = {"/dev/nvidiactl", "/dev/nvidia-uvm"}
T4 = Gpu("GPU-t4", 0, 0, "Tesla T4", 15 * GIB, 0, 0)
A100 = Gpu("GPU-a100", 1, 3, "NVIDIA A100-SXM4-40GB", 40 * GIB, 512 << 20, 1)
PARTS = (
    Partition("MIG-a", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864 << 20, 13 << 20, (30, 31)),
    Partition("MIG-b", "NVIDIA A100-SXM4-40GB MIG 2g.10gb", 9984 << 20, 0, (39, 40)),
)


def test_models_may_be_mixed() -> None:
    devices = devices_of([A100, T4], CONTROL)
    assert [(device.id, device.index, device.model) for device in devices] == [
        ("GPU-t4", 0, "Tesla T4"),
        ("GPU-a100", 1, "NVIDIA A100-SXM4-40GB"),
    ]
    assert [device.numa_node for device in devices] == [0, 1]
    assert {device.source for device in devices} == {"nvml"}


def test_what_the_driver_keeps_is_not_shared_out() -> None:
    assert [device.memory_mib for device in devices_of([T4, A100], ())] == [15 * 1024, 40 * 1024 - 512]


def test_only_nodes_that_exist_are_named() -> None:
    (device,) = devices_of([A100], {"/dev/nvidia0", "/dev/nvidia3", *CONTROL})
    assert device.paths == ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")


def test_mig_devices_take_the_place_of_their_gpu() -> None:
    divided = replace(A100, partitioned=True, partitions=PARTS)
    devices = devices_of([T4, divided, replace(T4, id="GPU-last", index=2)], ())
    assert [(device.id, device.index, device.parent, device.numa_node) for device in devices] == [
        ("GPU-t4", 0, "", 0),
        ("MIG-a", 1, "GPU-a100", 1),
        ("MIG-b", 2, "GPU-a100", 1),
        ("GPU-last", 3, "", 0),
    ]
    assert [device.memory_mib for device in devices[1:3]] == [4864 - 13, 9984]
    assert devices[1].model == "NVIDIA A100-SXM4-40GB MIG 1g.5gb"


def test_a_mig_device_needs_its_gpus_node_and_its_own_capabilities() -> None:
    divided = replace(A100, partitioned=True, partitions=PARTS)
    there = {*nodes_of(A100), *(f"/dev/nvidia-caps/nvidia-cap{number}" for number in (30, 31, 39, 40))}
    first, second = devices_of([divided], there)
    assert first.paths == (*nodes_of(A100), "/dev/nvidia-caps/nvidia-cap30", "/dev/nvidia-caps/nvidia-cap31")
    assert second.paths == (*nodes_of(A100), "/dev/nvidia-caps/nvidia-cap39", "/dev/nvidia-caps/nvidia-cap40")


def test_a_gpu_in_mig_mode_with_no_mig_device_is_none() -> None:
    assert devices_of([replace(A100, partitioned=True)], ()) == []


def test_capabilities_are_where_the_driver_says() -> None:
    assert access_files(3, 7, 0) == (
        "/proc/driver/nvidia/capabilities/gpu3/mig/gi7/access",
        "/proc/driver/nvidia/capabilities/gpu3/mig/gi7/ci0/access",
    )


@pytest.mark.parametrize(
    ("content", "minor"),
    [
        (b"DeviceFileMinor: 66\nDeviceFileMode: 256\nDeviceFileModify: 1\n", 66),
        (b"DeviceFileMinor: ", None),
        (b"DeviceFileMinor: 99999999999\n", None),
        (b"\xff\x00", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_capability_that_cannot_be_read_is_none(content: bytes | None, minor: int | None) -> None:
    assert capability_minor(content) == minor


def test_sysfs_writes_a_bus_id_in_its_own_way() -> None:
    assert pci_folder("00000000:3B:00.0") == "/sys/bus/pci/devices/0000:3b:00.0"
    assert pci_folder("00010000:3B:00.0") == "/sys/bus/pci/devices/10000:3b:00.0"
