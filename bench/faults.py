"""How soon the other client runs when the one that holds the GPU dies or goes idle."""

import signal
import time
from collections.abc import Callable
from functools import partial

from bench.figures import gap_after_last_ns
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row
from bench.stage import Laboratory, Saturating, sleep_until_ns
from edgeshare.cli.demo_programs import Program
from edgeshare.units import NS_PER_S, NS_PER_US

KERNEL_US = 1_000
RUN_S = 2.0
FAULT_AT_NS = round(1.5 * NS_PER_S)
HOLDER_PERCENT = 90
"""So that it holds the GPU most of the time, and so probably when it is killed."""


def measurements(effort: Effort) -> list[Measurement]:
    """Holder killed, holder idle."""
    return [
        Measurement("holder killed", partial(measure, effort, "holder killed", kill_ns)),
        Measurement("holder goes idle", partial(measure, effort, "holder goes idle", idle_ns)),
    ]


def measure(effort: Effort, name: str, take: Callable[[Laboratory], int | None], bench: Bench) -> list[Row]:
    """From the end of the holder's last kernel to the begin of the other's next."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    taken_ns = [take(laboratory) for _ in range(effort.fault_runs)]
    gaps_us = [gap_ns / NS_PER_US for gap_ns in taken_ns if gap_ns is not None]
    settings: dict[str, str | float] = {"scheduling": SCHEDULINGS[0], "kernel_us": KERNEL_US}
    # By chance the other one may have held the GPU each time: then nothing was measured.
    return [Row(f"{name}, until the other runs", "us", gaps_us, settings)] if gaps_us else []


def kill_ns(laboratory: Laboratory) -> int | None:
    """One try; None where it was not the holder that was killed."""
    killed_ns: list[int] = []

    def kill(programs: dict[str, Program], begin_ns: int) -> None:
        sleep_until_ns(begin_ns + FAULT_AT_NS)
        killed_ns.append(time.monotonic_ns())
        programs["holder"].signal(signal.SIGKILL)

    run = laboratory.saturate(clients(), RUN_S, kill)
    ends_ns = [interval.end_ns for interval in run.intervals if interval.name == "holder"]
    if not ends_ns or ends_ns[-1] < killed_ns[0]:
        return None
    return gap_after_last_ns(run.intervals, "holder")


def idle_ns(laboratory: Laboratory) -> int | None:
    """One try; None where the holder ran nothing at all."""
    pause = ("--idle-from", str(FAULT_AT_NS / NS_PER_S), "--idle-until", str(10 * RUN_S))
    return gap_after_last_ns(laboratory.saturate(clients(pause), RUN_S).intervals, "holder")


def clients(arguments: tuple[str, ...] = ()) -> list[Saturating]:
    """The holder, with more arguments for burn, and the other."""
    holder = Saturating("holder", KERNEL_US, HOLDER_PERCENT, arguments=arguments)
    return [holder, Saturating("other", KERNEL_US, 100 - HOLDER_PERCENT)]
