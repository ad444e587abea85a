"""Machines of many kinds: what their kernels say of them, as a tree below a root, and what their GPUs' driver says."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from simgpu.trees import JETSONS, add_jetson, add_pcie_edgetpu, add_usb_edgetpu, link, write

DEVICETREE = "sys/firmware/devicetree/base"
PRODUCT = "sys/class/dmi/id/product_name"


@dataclass(frozen=True)
class Machine:
    build: Callable[[Path], None]
    gpus: Mapping[str, Any] = field(default_factory=dict)
    """What ``simgpu.create.create`` makes them of; nothing: there is no driver."""


def release_line(release: int, revision: str, board: str = "generic", eabi: str = "aarch64") -> str:
    """The beginning of /etc/nv_tegra_release."""
    return (
        f"# R{release} (release), REVISION: {revision}, GCID: 21589087, BOARD: {board}, EABI: {eabi}, "
        "DATE: Fri Jun 26 04:38:25 UTC 2020\n"
    )


NEWER_LINES = "# KERNEL_VARIANT: oot\nTARGET_USERSPACE_LIB_DIR=nvidia\n"
"""What follows from R36 on."""


def add_node(root: Path, path: str, *compatible: str) -> None:
    """Adds a node to the devicetree; with no compatible string it has no such property."""
    folder = root / DEVICETREE / path
    folder.mkdir(parents=True, exist_ok=True)
    if compatible:
        write(folder / "compatible", "".join(f"{name}\0" for name in compatible))


def add_processors(root: Path, numbers: Iterable[int], *compatible: str) -> None:
    for number in numbers:
        add_node(root, f"cpus/cpu@{number:x}", *compatible)
        # It names the processors anew, in nodes that are none.
        add_node(root, f"cpus/cpu-map/cluster0/core{number:x}")


def add_pci(root: Path, address: str, vendor: str, device: str, class_code: str) -> None:
    folder = root / "sys/devices/pci0000:00" / address
    for name, code in (("vendor", vendor), ("device", device), ("class", class_code)):
        write(folder / name, f"0x{code}\n")
    link(root / "sys/bus/pci/devices" / address, folder)


def add_usb(root: Path, port: str, vendor: str, product: str, own_class: str, *interfaces: str) -> None:
    folder = root / "sys/bus/usb/devices" / port
    for name, code in (("idVendor", vendor), ("idProduct", product), ("bDeviceClass", own_class)):
        write(folder / name, f"{code}\n")
    for number, code in enumerate(interfaces):
        write(folder / f"{port}:1.{number}/bInterfaceClass", f"{code}\n")


def jetson(name: str, release: str, processors: Callable[[Path], None], gpu: tuple[str, ...], root: Path) -> None:
    """``gpu``: its node and what is compatible with it."""
    add_jetson(root, JETSONS[name])
    processors(root)
    add_node(root, *gpu)
    add_node(root, "thermal-zones/gpu-thermal")
    add_node(root, "pwm-fan", "pwm-fan")
    write(root / "etc/nv_tegra_release", release)


def some(count: int, *compatible: str) -> Callable[[Path], None]:
    return lambda root: add_processors(root, range(count), *compatible)


def tx2_processors(root: Path) -> None:
    add_processors(root, range(2), "nvidia,tegra186-denver")
    add_processors(root, range(2, 6), "arm,cortex-a57")


def first_nano(root: Path) -> None:
    """The one in the README of k8s-dt-node-labeller, and in what its author wrote of it."""
    write(root / DEVICETREE / "model", "NVIDIA Jetson Nano Developer Kit\0")
    add_node(root, "", "nvidia,jetson-nano", "nvidia,tegra210")
    add_node(root, "gpu", "nvidia,tegra210-gm20b", "nvidia,gm20b")


def coral_usb(used: bool, root: Path) -> None:
    add_usb_edgetpu(root, "2-1", 4, used=used)


def raspberry_pi(root: Path) -> None:
    """Linux, arch/arm64/boot/dts/broadcom/bcm2711-rpi-4-b.dts."""
    write(root / DEVICETREE / "model", "Raspberry Pi 4 Model B Rev 1.4\0")
    add_node(root, "", "raspberrypi,4-model-b", "brcm,bcm2711")
    add_processors(root, range(4), "arm,cortex-a72")
    add_node(root, "gpu", "brcm,bcm2711-vc5")
    add_node(root, "soc/serial@7e201000", "arm,pl011", "arm,primecell")
    add_usb(root, "1-1", "2109", "3431", "09", "09")
    add_usb_edgetpu(root, "2-1", 2)


def server(root: Path) -> None:
    """A plain one: the screen of its management controller accelerates nothing."""
    add_pci(root, "0000:00:00.0", "8086", "2020", "060000")
    add_pci(root, "0000:03:00.0", "1a03", "2000", "030000")
    add_pci(root, "0000:18:00.0", "8086", "1572", "020000")
    add_usb(root, "1-14", "046b", "ff01", "09", "09")
    add_usb(root, "1-14.1", "046b", "ff10", "00", "03", "03")
    # Recent kernels make up an empty devicetree.
    write(root / DEVICETREE / "name", "\0")


def gpu_server(device_ids: list[str], class_code: str, product: str, root: Path) -> None:
    server(root)
    add_gpus(root, device_ids, class_code)
    write(root / PRODUCT, f"{product}\n")


def add_gpus(root: Path, device_ids: list[str], class_code: str) -> None:
    """Where a simulated driver has them."""
    for number, device_id in enumerate(device_ids, start=1):
        add_pci(root, f"0000:{number << 4:02x}:00.0", "10de", device_id, class_code)


def dgx_spark(root: Path) -> None:
    """ACPI, no devicetree; its GPU, at 000f:01:00.0 on a real one, has the machine's memory. (lspci, as several owners
    show it.)"""
    write(root / PRODUCT, "NVIDIA_DGX_Spark\n")
    add_pci(root, "000f:00:00.0", "10de", "22d1", "060400")
    add_gpus(root, ["2e12"], "030000")
    add_pci(root, "0000:01:00.0", "15b3", "1021", "020000")


DIVIDED = ["1g.10gb"] * 3 + ["2g.20gb"] * 2

JETSON_MACHINES = {
    "tx1": Machine(
        partial(
            jetson,
            "tx1",
            release_line(24, "2.1", "t210ref"),
            some(4, "arm,cortex-a57"),
            ("gpu", "nvidia,tegra210-gm20b", "nvidia,gm20b"),
        )
    ),
    "tx2": Machine(
        partial(
            jetson,
            "tx2",
            release_line(28, "1.0", "t186ref"),
            tx2_processors,
            ("gpu@17000000", "nvidia,tegra186-gp10b", "nvidia,gp10b"),
        )
    ),
    "tx2-nx": Machine(
        partial(
            jetson,
            "tx2-nx",
            release_line(32, "7.1", "t186ref"),
            tx2_processors,
            ("gpu@17000000", "nvidia,tegra186-gp10b", "nvidia,gp10b"),
        )
    ),
    "nano": Machine(
        partial(
            jetson,
            "nano",
            release_line(32, "4.3", "t210ref"),
            some(4, "arm,cortex-a57"),
            ("gpu", "nvidia,tegra210-gm20b", "nvidia,gm20b"),
        )
    ),
    "nano-first": Machine(first_nano),
    "agx-xavier": Machine(
        partial(
            jetson,
            "agx-xavier",
            release_line(32, "4.3", "t186ref"),
            some(8, "nvidia,tegra194-carmel"),
            ("gpu@17000000", "nvidia,gv11b"),
        )
    ),
    "xavier-nx": Machine(
        partial(
            jetson,
            "xavier-nx",
            release_line(35, "4.1", "t186ref"),
            some(6, "nvidia,tegra194-carmel"),
            ("gpu@17000000", "nvidia,gv11b"),
        )
    ),
    "orin-nano": Machine(
        partial(
            jetson,
            "orin-nano",
            release_line(36, "4.7") + NEWER_LINES,
            some(6, "arm,cortex-a78"),
            ("bus@0/gpu@17000000", "nvidia,ga10b"),
        )
    ),
    "orin-nx": Machine(
        partial(
            jetson,
            "orin-nx",
            release_line(36, "4.7") + NEWER_LINES,
            some(8, "arm,cortex-a78"),
            ("bus@0/gpu@17000000", "nvidia,ga10b"),
        )
    ),
    "agx-orin": Machine(
        partial(
            jetson,
            "agx-orin",
            release_line(35, "4.1", "t186ref"),
            some(12, "arm,cortex-a78"),
            ("gpu@17000000", "nvidia,ga10b"),
        )
    ),
    # As above, with the part of NVML that a Jetson has.
    "agx-orin-nvml": Machine(
        partial(
            jetson,
            "agx-orin",
            release_line(36, "4.7") + NEWER_LINES,
            some(12, "arm,cortex-a78"),
            ("bus@0/gpu@17000000", "nvidia,ga10b"),
        ),
        {"gpus": 1, "model": "orin", "cuda_version": "12.4"},
    ),
    "agx-thor": Machine(
        partial(
            jetson,
            "agx-thor",
            release_line(38, "2.2") + NEWER_LINES,
            some(14, "arm,neoverse-v3ae"),
            # Its GPU is on PCI; this is the other thing that the name finds.
            ("bus@0/host1x@8181200000", "nvidia,tegra264-host1x"),
        )
    ),
}

MACHINES = {
    **JETSON_MACHINES,
    "coral-usb-unused": Machine(partial(coral_usb, False)),
    "coral-usb-used": Machine(partial(coral_usb, True)),
    "coral-pcie": Machine(lambda root: add_pcie_edgetpu(root, "0000:03:00.0", 0)),
    "raspberry-pi-coral": Machine(raspberry_pi),
    "x86-server": Machine(server),
    "mixed-v100-t4": Machine(
        partial(gpu_server, ["1db1", "1db1", "1eb8"], "030200", "PowerEdge R740"),
        {"gpus": 3, "model": ["v100", "v100", "t4"]},
    ),
    "h100-mig": Machine(
        partial(gpu_server, ["2330"] * 8, "030200", "DGXH100"),
        {"gpus": 8, "model": "h100", "mig": {6: DIVIDED, 7: DIVIDED}, "cuda_version": "13.0"},
    ),
    "rtx4090": Machine(
        partial(gpu_server, ["2684"], "030000", "System Product Name"),
        {"gpus": 1, "model": "rtx4090", "reserved_mib": 349},
    ),
    "vgpu": Machine(
        partial(gpu_server, ["1eb8"], "030200", "VMware7,1"),
        {"gpus": 1, "model": "t4-16q"},
    ),
    "dgx-spark": Machine(dgx_spark, {"gpus": 1, "model": "gb10", "cuda_version": "13.0"}),
}
"""Processors and GPUs: Linux, arch/arm64/boot/dts/nvidia/tegra{186,194,234,264}.dtsi; those of Jetson Linux up to 32,
which has two names for a GPU: its drivers/gpu/nvgpu and what users show of their devicetrees."""
