"""Which machine the figures are from."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from edgeshare import __version__


def describe_host() -> dict[str, object]:
    """Processor, cores, kernel and load: enough to tell whose figures these are."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "edgeshare": __version__,
        "date": datetime.now(UTC).date().isoformat(),
    }


def cpu_model(cpuinfo: str) -> str:
    """The model in the text of /proc/cpuinfo; the architecture where it names none, as on many Arm boards."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "Hardware"):
            return value.strip()
    return platform.machine()


def cpu_seconds(pid: int) -> float:
    """Processor time that a live process has used."""
    # The command's name, in brackets, may hold anything; utime and stime are fields 14 and 15 (proc(5)).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int, most: bool = False) -> float:
    """Memory that a live process has, or the most that it ever had (proc(5), VmRSS and VmHWM)."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.partition("VmHWM:" if most else "VmRSS:")[2].split()[0]) / 1024


def descriptors(pid: int) -> int:
    """How many a live process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
