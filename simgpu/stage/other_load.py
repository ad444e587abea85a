"""How busy other programs keep this machine's processors meanwhile: who shares them explains a late hand-over."""

import os
import resource
import time
from pathlib import Path

USER_HZ = os.sysconf("SC_CLK_TCK")


class OtherLoad:
    """What other programs used of the processors, counted from its making on."""

    def __init__(self) -> None:
        self._begin_s = time.monotonic()
        self._busy_s = machine_busy_s(Path("/proc/stat").read_text(encoding="ascii"))
        self._own_s = own_s()

    def percent(self) -> float:
        """Of all processors' time so far, what others had: neither this process nor those that it has seen end."""
        busy_s = machine_busy_s(Path("/proc/stat").read_text(encoding="ascii")) - self._busy_s
        return others_percent(busy_s, own_s() - self._own_s, time.monotonic() - self._begin_s, os.cpu_count() or 1)


def others_percent(busy_s: float, own_s: float, elapsed_s: float, cores: int) -> float:
    """Others' part of the time that all cores had."""
    # The kernel counts both in ticks of its own.
    return max(0.0, 100 * (busy_s - own_s) / (cores * elapsed_s))


def machine_busy_s(stat: str) -> float:
    """Time that all processors together have worked, from the text of /proc/stat (proc(5))."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / USER_HZ


def own_s() -> float:
    """Processor time of this process, and of its children and theirs that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
