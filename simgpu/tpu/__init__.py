"""Simulated EdgeTPUs on a machine: devices that let one process in at a time, and a log of what ran on them."""

from dataclasses import dataclass
from pathlib import Path

from simgpu.native import LIBRARIES, PACKAGE
from simgpu.trees import add_pcie_edgetpu, add_usb_edgetpu, remove_usb_edgetpu

DRIVER = LIBRARIES / "libsimtpu.so"
"""Stands for the kernel's part. Programs that are not linked to it preload it, behind everything else."""
TPUBURN = PACKAGE / "bin" / "tpuburn"
"""A program that infers for a given time, again and again."""


@dataclass(frozen=True)
class Inference:
    """What ran on a device, in CLOCK_MONOTONIC's nanoseconds."""

    pid: int
    begin_ns: int
    end_ns: int
    device: str
    """Its path, as programs name it."""
    tag: str
    """The program's SIMGPU_TAG."""


@dataclass(frozen=True)
class Tpus:
    """A machine's EdgeTPUs."""

    folder: Path
    """Stands for the root of the file system: ``dev`` and ``sys`` are in it."""

    def log(self) -> list[Inference]:
        """All that has run, in the order of its ends."""
        path = self.folder / "log"
        text = path.read_text() if path.exists() else ""
        # A line that crosses a page's end is there in part while it is written.
        fields = (line.split() for line in text[: text.rfind("\n") + 1].splitlines())
        return [Inference(int(pid), int(begin), int(end), device, tag) for pid, begin, end, device, tag in fields]

    def enumerate_usb(self, port: str, number: int, *, started: bool) -> Path:
        """Lets a device on the USB appear under another number, as it does when it gets its firmware; returns its path
        as programs name it."""
        if (self.folder / "sys/bus/usb/devices" / port).exists():
            remove_usb_edgetpu(self.folder, port)
        add_usb_edgetpu(self.folder, port, number, used=started)
        bus = int(port.partition("-")[0])
        node = Path(f"dev/bus/usb/{bus:03d}/{number:03d}")
        (self.folder / node).chmod(0o666)
        return Path("/") / node


def add_tpus(machine: Path, *addresses: str) -> Tpus:
    """Gives a machine's folder EdgeTPUs at these addresses of the PCI bus: ``/dev/apex_0`` and so on."""
    tpus = Tpus(machine / "tpus")
    for number, address in enumerate(addresses):
        add_pcie_edgetpu(tpus.folder, address, number)
        (tpus.folder / f"dev/apex_{number}").chmod(0o666)
    return tpus
