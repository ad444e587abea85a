"""How soon the other client runs when the one that holds the GPU dies, is stopped or goes idle."""

import signal
import time
from collections.abc import Callable
from functools import partial

from bench.figures import gap_after_last_ns, next_begin_ns, running_at
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Client, Laboratory, Run, sleep_until_ns
from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from simgpu.stage.programs import Program

KERNELS = "1000"
RUN_S = 2.0
FAULT_AT_NS = round(1.5 * NS_PER_S)
HOLDER_PERCENT = 90
"""With so much it holds the GPU most of the time, and so probably when it is killed."""

TRIES = 3
"""For one that is not killed while it holds."""


def measurements(effort: Effort) -> list[Measurement]:
    """Holder killed, stopped, idle."""
    kinds: tuple[tuple[str, float, Callable[[Laboratory, int], int | None]], ...] = (
        ("holder killed (-9)", 2, killed_ns),
        ("holder stopped (SIGSTOP)", 100, stopped_ns),
        ("holder goes idle", 1, idle_ns),
    )
    return [
        Measurement(f"{name}, {scheduling}", partial(measure, effort, scheduling, name, Target(most_ms), take))
        for name, most_ms, take in kinds
        for scheduling in SCHEDULINGS
    ]


def measure(
    effort: Effort,
    scheduling: str,
    name: str,
    target: Target,
    take: Callable[[Laboratory, int], int | None],
    bench: Bench,
) -> list[Row]:
    """Several times; by chance it may have been the other one that held."""
    laboratory = bench.laboratory(scheduling)
    taken_ms = []
    for number in range(effort.fault_runs):
        for _ in range(TRIES):
            # At another moment of a slice each time.
            taken_ns = take(laboratory, FAULT_AT_NS + number * NS_PER_MS)
            if taken_ns is not None:
                taken_ms.append(taken_ns / NS_PER_MS)
                break
    settings: dict[str, str | float] = {"kernels": "1 ms", "scheduling": scheduling}
    if not taken_ms:
        return []
    note = f"longest of {len(taken_ms)}: {max(taken_ms):.2f} ms"
    return [Row(f"{name}: until the other's next kernel", "ms", taken_ms, settings, target=target, note=note)]


def killed_ns(laboratory: Laboratory, fault_at_ns: int) -> int | None:
    """From the end of the last that the dead one had queued; None where it was not the holder."""
    run, fault_ns = signalled(laboratory, signal.SIGKILL, fault_at_ns)
    return gap_after_last_ns(run.intervals, "holder") if running_at(run.intervals, fault_ns) == "holder" else None


def stopped_ns(laboratory: Laboratory, fault_at_ns: int) -> int | None:
    """From the signal on, what the stopped one had queued included; None where it was not the holder."""
    run, fault_ns = signalled(laboratory, signal.SIGSTOP, fault_at_ns)
    next_ns = next_begin_ns(run.intervals, "other", fault_ns)
    return next_ns - fault_ns if next_ns and running_at(run.intervals, fault_ns) == "holder" else None


def signalled(laboratory: Laboratory, number: signal.Signals, fault_at_ns: int) -> tuple[Run, int]:
    """A run in which the holder gets a signal, and when that was."""
    at_ns: list[int] = []

    def send(programs: dict[str, Program], begin_ns: int) -> None:
        sleep_until_ns(begin_ns + fault_at_ns)
        at_ns.append(time.monotonic_ns())
        programs["holder"].signal(number)
        # One that is stopped has to go on to hear that its run is over.
        sleep_until_ns(begin_ns + round(RUN_S * NS_PER_S))
        programs["holder"].signal(signal.SIGCONT)

    return laboratory.run(clients(), RUN_S, send), at_ns[0]


def idle_ns(laboratory: Laboratory, fault_at_ns: int) -> int | None:
    """From the end of its last; None where the holder ran nothing at all."""
    pause = ("--idle-from", str(fault_at_ns / NS_PER_S), "--idle-until", str(10 * RUN_S))
    return gap_after_last_ns(laboratory.run(clients(pause), RUN_S).intervals, "holder")


def clients(arguments: tuple[str, ...] = ()) -> list[Client]:
    """The holder, with more arguments for burn, and the other."""
    holder = Client("holder", KERNELS, HOLDER_PERCENT, arguments=arguments)
    return [holder, Client("other", KERNELS, 100 - HOLDER_PERCENT)]
