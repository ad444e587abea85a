"""A Jetson's GPU, found in trees as the kernels of ten boards have them."""

from pathlib import Path

import pytest

from edgeshare.contract.devices import Accelerator, Device
from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.jetson import JetsonInventory
from simgpu.trees import JETSONS, Jetson, add_jetson, write

SERIAL = "1421919056789"
DEVICETREE = "sys/firmware/devicetree/base"
RESERVE_MIB = 512

MODELS = {
    "tx1": "NVIDIA Jetson TX1",
    "nano": "NVIDIA Jetson Nano",
    "tx2": "NVIDIA Jetson TX2",
    "tx2-nx": "NVIDIA Jetson TX2 NX",
    "agx-xavier": "NVIDIA Jetson AGX Xavier",
    "xavier-nx": "NVIDIA Jetson Xavier NX",
    "agx-orin": "NVIDIA Jetson AGX Orin",
    "orin-nx": "NVIDIA Jetson Orin NX",
    "orin-nano": "NVIDIA Jetson Orin Nano",
    "agx-thor": "NVIDIA Jetson AGX Thor",
}


def only(root: Path, reserve_mib: int = RESERVE_MIB) -> Device:
    (device,) = JetsonInventory(reserve_mib, root).devices()
    return device


def test_every_board_has_its_model_here() -> None:
    assert set(MODELS) == set(JETSONS)


@pytest.mark.parametrize("name", JETSONS)
def test_a_board_is_one_gpu_with_the_machines_memory_less_the_reserve(tmp_path: Path, name: str) -> None:
    board = JETSONS[name]
    add_jetson(tmp_path, board, SERIAL)
    device = only(tmp_path)
    assert (device.id, device.index, device.model) == (SERIAL, 0, MODELS[name])
    assert device.memory_mib == board.memory_kib // 1024 - RESERVE_MIB
    assert (device.accelerator, device.source, device.numa_node) == (Accelerator.GPU, "jetson", -1)
    assert (device.healthy, device.cause) == (True, "")


@pytest.mark.parametrize("name", JETSONS)
def test_a_container_gets_all_of_its_device_nodes(tmp_path: Path, name: str) -> None:
    add_jetson(tmp_path, JETSONS[name])
    assert sorted(only(tmp_path).paths) == sorted(f"/dev/{node}" for node in JETSONS[name].nodes)


def test_other_device_nodes_are_not_handed_out(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    for node in ("video0", "nvhost-vic", "mmcblk0", "dri/card0"):
        write(tmp_path / "dev" / node, "")
    assert sorted(only(tmp_path).paths) == sorted(f"/dev/{node}" for node in JETSONS["nano"].nodes)


@pytest.mark.parametrize("name", JETSONS)
def test_memory_and_temperature_are_the_kernels(tmp_path: Path, name: str) -> None:
    add_jetson(tmp_path, JETSONS[name], SERIAL)
    inventory = JetsonInventory(RESERVE_MIB, tmp_path)
    used_kib = JETSONS[name].memory_kib // 2
    assert abs(inventory.memory_used_mib(SERIAL) - used_kib // 1024) <= 1
    assert inventory.temperature_c(SERIAL) == 41.5
    assert inventory.processes(SERIAL) is None


def test_no_thermal_zone_is_no_temperature(tmp_path: Path) -> None:
    assert JetsonInventory(0, tmp_path).temperature_c(SERIAL) is None


def test_a_board_of_another_maker_has_the_model_that_its_devicetree_says(tmp_path: Path) -> None:
    add_jetson(tmp_path, Jetson(("vendor,carrier", "nvidia,tegra234"), "Vendor Box 7", 8_000_000, ("nvmap", "nvidia0")))
    assert only(tmp_path).model == "Vendor Box 7"


def test_a_gpu_without_its_driver_is_listed_with_that_cause(tmp_path: Path) -> None:
    add_jetson(tmp_path, Jetson(JETSONS["tx2"].compatible, "quill", 8_000_000, ("nvmap", "nvhost-ctrl")))
    device = only(tmp_path)
    assert not device.healthy
    assert device.cause == "its driver is not loaded: there is no device node of it in /dev"
    assert device.paths == ()


@pytest.mark.parametrize("compatible", [(), ("raspberrypi,4-model-b", "brcm,bcm2711")])
def test_a_machine_that_is_no_jetson_has_none(tmp_path: Path, compatible: tuple[str, ...]) -> None:
    if compatible:
        add_jetson(tmp_path, Jetson(compatible, "Raspberry Pi 4", 4_000_000, ()))
    assert JetsonInventory(RESERVE_MIB, tmp_path).devices() == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (f"{DEVICETREE}/compatible", b"nvidia,p3450-0000\0nvidia,tegr", "names no Tegra from X1 to Thor"),
        (f"{DEVICETREE}/compatible", b"nvidia,\xff\xfe\0nvidia,tegra210\0", "compatible holds no text"),
        (f"{DEVICETREE}/compatible", b"nvidia,tegra210\0" * 9000, "compatible is larger than"),
        (f"{DEVICETREE}/serial-number", b"\0", "no usable serial-number"),
        (f"{DEVICETREE}/serial-number", b"0000000000000\0", "no usable serial-number"),
        (f"{DEVICETREE}/serial-number", b"142", "no usable serial-number"),
        (f"{DEVICETREE}/serial-number", b"1421::919\0", "no usable serial-number"),
        (f"{DEVICETREE}/serial-number", b"12\n34567\0", "serial-number holds no plain line of text"),
        (f"{DEVICETREE}/serial-number", b"9" * 64, "no usable serial-number"),
        (f"{DEVICETREE}/model", b"\x1b[31mJetson\0", "model holds no plain line of text"),
        ("proc/meminfo", b"", "/proc/meminfo has no line MemTotal"),
        ("proc/meminfo", b"MemTotal:        40593", "/proc/meminfo has no line MemTotal"),
        ("proc/meminfo", b"MemTotal:  4059332 kB\n", "/proc/meminfo has no line MemAvailable"),
        ("proc/meminfo", b"\x00\xff" * 100, "/proc/meminfo has no line MemTotal"),
        ("proc/meminfo", b"MemTotal:  400000 kB\nMemAvailable:  1 kB\n", "a reserve of 512 MiB leaves nothing"),
    ],
)
def test_what_cannot_be_made_out_is_said(tmp_path: Path, file: str, content: bytes, said: str) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    (tmp_path / file).write_bytes(content)
    with pytest.raises(Unavailable, match=said) as raised:
        JetsonInventory(RESERVE_MIB, tmp_path).devices()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("file", [f"{DEVICETREE}/serial-number", "proc/meminfo"])
def test_an_absent_file_is_said(tmp_path: Path, file: str) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    (tmp_path / file).unlink()
    with pytest.raises(Unavailable, match=file.rpartition("/")[2]):
        JetsonInventory(RESERVE_MIB, tmp_path).devices()


def test_broken_files_are_no_temperature_and_no_memory(tmp_path: Path) -> None:
    add_jetson(tmp_path, JETSONS["nano"])
    write(tmp_path / "sys/class/thermal/thermal_zone1/temp", "hot\n")
    write(tmp_path / "proc/meminfo", "MemTot")
    inventory = JetsonInventory(RESERVE_MIB, tmp_path)
    assert inventory.temperature_c(SERIAL) is None
    assert inventory.memory_used_mib(SERIAL) == 0
