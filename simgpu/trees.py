"""Simulated trees of ``/sys``, ``/proc`` and ``/dev``: what a kernel says of Jetsons and of Coral's EdgeTPUs.

Device nodes are empty files: they can be listed and named, not used.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

OLD_NODES = (
    "nvhost-as-gpu",
    "nvhost-ctrl",
    "nvhost-ctrl-gpu",
    "nvhost-dbg-gpu",
    "nvhost-gpu",
    "nvhost-prof-gpu",
    "nvmap",
)
"""Jetson Linux 32. (NVIDIA Container Toolkit, test/input/csv_samples/jetson.csv; meta-tegra, issue 230.)"""

ORIN_NODES = (
    *(f"nvgpu/igpu0/{name}" for name in ("as", "channel", "ctrl", "ctxsw", "dbg", "power", "prof", "sched", "tsg")),
    "dri/renderD128",
    "host1x-fence",
    "nvmap",
    "nvsciipc",
)
"""Jetson Linux 36. (NVIDIA Container Toolkit, testdata/lookup/rootfs-orin, devices.csv.)"""

THOR_NODES = (
    *(f"nvgpu/igpu-0000:01:00.0/{name}" for name in ("as", "channel", "ctrl", "power", "tsg")),
    "dri/renderD128",
    "nvidia0",
    "nvidiactl",
    "nvidia-modeset",
    "nvidia-uvm",
    "nvmap",
    "nvsciipc",
)
"""Jetson Linux 38. (meta-avocado, pull request 248; eve, pull request 6387.)"""


@dataclass(frozen=True)
class Jetson:
    """A board as its devicetree describes it."""

    compatible: tuple[str, ...]
    model: str
    memory_kib: int
    """``MemTotal``: what firmware and kernel leave of the memory."""
    nodes: tuple[str, ...]
    thermal_zone: str = "GPU-therm"


JETSONS = {
    # Linux, arch/arm64/boot/dts/nvidia/tegra210-p2371-2180.dts; Jetson Linux puts "nvidia,jetson-cv" between
    # (NVIDIA/jetson-gpio, gpio_pin_data.py)
    "tx1": Jetson(
        ("nvidia,p2371-2180", "nvidia,jetson-cv", "nvidia,tegra210"),
        "NVIDIA Jetson TX1 Developer Kit",
        4_059_712,
        OLD_NODES,
    ),
    # its model: ultralytics/ultralytics, pull request 9876
    "nano": Jetson(
        ("nvidia,p3449-0000-b00+p3448-0000-b00", "nvidia,jetson-nano", "nvidia,tegra210"),
        "NVIDIA Jetson Nano Developer Kit",
        4_059_332,
        OLD_NODES,
    ),
    # NVIDIA/jetson-gpio, gpio_pin_data.py
    "tx2": Jetson(("nvidia,quill", "nvidia,tegra186"), "quill", 8_047_000, OLD_NODES),
    # Linux, tegra186-p3509-0000+p3636-0001.dts
    "tx2-nx": Jetson(
        ("nvidia,p3509-0000+p3636-0001", "nvidia,tegra186"),
        "NVIDIA Jetson TX2 NX Developer Kit",
        4_009_000,
        OLD_NODES,
    ),
    # its model: adafruit/Adafruit_Python_PlatformDetect, pull request 37
    "agx-xavier": Jetson(
        ("nvidia,galen", "nvidia,jetson-xavier", "nvidia,p2822-0000+p2888-0001", "nvidia,tegra194"),
        "Jetson-AGX",
        32_691_000,
        OLD_NODES,
    ),
    # Linux, tegra194-p3509-0000+p3668-0000.dts
    "xavier-nx": Jetson(
        ("nvidia,p3509-0000+p3668-0000", "nvidia,tegra194"),
        "NVIDIA Jetson Xavier NX Developer Kit (SD-card)",
        7_910_000,
        OLD_NODES,
    ),
    # NVIDIA/jetson-gpio, issue 125; its model: rbonghi/jetson_stats, issue 864
    "agx-orin": Jetson(
        ("nvidia,p3737-0000+p3701-0005", "nvidia,p3701-0005", "nvidia,tegra234", "nvidia,tegra23x"),
        "NVIDIA Jetson AGX Orin Developer Kit",
        64_349_000,
        ORIN_NODES,
        "gpu-thermal",
    ),
    # Linux, tegra234-p3768-0000+p3767-0000.dts; its model: ultralytics/ultralytics, pull request 9876
    "orin-nx": Jetson(
        ("nvidia,p3768-0000+p3767-0000", "nvidia,p3767-0000", "nvidia,tegra234"),
        "NVIDIA Orin NX Developer Kit",
        15_655_000,
        ORIN_NODES,
        "gpu-thermal",
    ),
    # Linux, tegra234-p3768-0000+p3767-0005.dts
    "orin-nano": Jetson(
        ("nvidia,p3768-0000+p3767-0005", "nvidia,p3767-0005", "nvidia,tegra234"),
        "NVIDIA Jetson Orin Nano Developer Kit",
        7_802_000,
        ORIN_NODES,
        "gpu-thermal",
    ),
    # NVIDIA/jetson-gpio, issue 135; its model: Linux, tegra264-p4071-0000+p3834-0008.dts
    "agx-thor": Jetson(
        ("nvidia,p4071-0000+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
        "NVIDIA Jetson AGX Thor Developer Kit",
        128_800_000,
        THOR_NODES,
        "gpu-thermal",
    ),
}
"""Short name → board, with the places that its strings are from. The amounts of memory are near the real ones."""


def add_jetson(root: Path, board: Jetson, serial: str = "1421919056789") -> None:
    """Makes the tree below ``root`` a Jetson's, its GPU at 41.5 °C, half of its memory in use."""
    tree = root / "sys/firmware/devicetree/base"
    # Properties of a devicetree end with a zero.
    write(tree / "compatible", "".join(f"{name}\0" for name in board.compatible))
    write(tree / "model", f"{board.model}\0")
    write(tree / "serial-number", f"{serial}\0")
    lines = (
        ("MemTotal", board.memory_kib),
        ("MemFree", board.memory_kib // 3),
        ("MemAvailable", board.memory_kib // 2),
    )
    write(root / "proc/meminfo", "".join(f"{name}:{kib:>16} kB\n" for name, kib in lines))
    for number, zone in enumerate(("CPU-therm", board.thermal_zone)):
        write(root / f"sys/class/thermal/thermal_zone{number}/type", f"{zone}\n")
        write(root / f"sys/class/thermal/thermal_zone{number}/temp", f"{40_500 + 1000 * number}\n")
    for node in board.nodes:
        write(root / "dev" / node, "")


def add_pcie_edgetpu(root: Path, address: str, number: int | None, numa_node: int = -1) -> None:
    """Adds an EdgeTPU on the PCI bus, which its driver calls ``apex_<number>``; None: it has no driver."""
    device = root / "sys/devices/pci0000:00" / address
    ids = (("vendor", "0x1ac1"), ("device", "0x089a"), ("class", "0x0880ff"))
    for name, value in (*ids, ("numa_node", str(numa_node))):
        write(device / name, f"{value}\n")
    link(root / "sys/bus/pci/devices" / address, device)
    if number is not None:
        apex = device / f"apex/apex_{number}"
        write(apex / "status", "ALIVE\n")
        write(apex / "temp", "52300\n")
        link(apex / "device", device)
        link(root / f"sys/class/apex/apex_{number}", apex)
        write(root / f"dev/apex_{number}", "")


def add_usb_edgetpu(root: Path, port: str, number: int, used: bool = False) -> None:
    """Adds an EdgeTPU at a USB port (``2-1.4``), as device ``number`` of its bus; once used it has other ids."""
    # The class of its interface changes, too. (adaptant-labs/edgetpu-exporter, README, and who has had it labelled.)
    vendor, product, interface = ("18d1", "9302", "ff") if used else ("1a6e", "089a", "fe")
    bus = int(port.partition("-")[0])
    device = root / "sys/bus/usb/devices" / port
    ids = (("idVendor", vendor), ("idProduct", product), ("bDeviceClass", "00"))
    for name, value in (*ids, ("busnum", str(bus)), ("devnum", str(number))):
        write(device / name, f"{value}\n")
    write(device / f"{port}:1.0/bInterfaceClass", f"{interface}\n")
    # Its interfaces stand beside it, too.
    (device.parent / f"{port}:1.0").mkdir(parents=True, exist_ok=True)
    write(root / f"dev/bus/usb/{bus:03d}/{number:03d}", "")


def remove_usb_edgetpu(root: Path, port: str) -> None:
    """Takes it off the bus: pulled out, or between its two selves."""
    device = root / "sys/bus/usb/devices" / port
    bus, number = (int((device / name).read_text()) for name in ("busnum", "devnum"))
    (root / f"dev/bus/usb/{bus:03d}/{number:03d}").unlink()
    shutil.rmtree(device)


def write(path: Path, content: str) -> None:
    """Puts a file into the tree."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def link(path: Path, target: Path) -> None:
    """Puts a link into the tree; a relative one, as sysfs has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def add_mig_access(root: Path, minor: int, gpu_instance: int, compute_instance: int, capability: int) -> None:
    """Says of a MIG device which two nodes open it, as NVIDIA's driver does: ``capability`` and the one after it."""
    instance = root / f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gpu_instance}"
    for number, folder in enumerate((instance, instance / f"ci{compute_instance}"), start=capability):
        write(folder / "access", f"DeviceFileMinor: {number}\nDeviceFileMode: 256\nDeviceFileModify: 1\n")
        write(root / f"dev/nvidia-caps/nvidia-cap{number}", "")
