"""What counting memory adds to one allocation and its free."""

from functools import partial

from bench.hook.paired import build, measure_pairs
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from edgeshare.contract.units import MIB, NS_PER_US

TARGET = Target(1)
BYTES = MIB


def measurements(effort: Effort) -> list[Measurement]:
    """One: memory has nothing to do with the order of kernels."""
    return [Measurement("one allocation and its free", partial(measure, effort))]


def measure(effort: Effort, bench: Bench) -> list[Row]:
    """Batches through the hook and batches past it take turns in one process, far below its cap."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    argv = [str(build("alloc.c", bench.folder)), str(effort.allocation_pairs), str(BYTES)]
    taken = [measure_pairs(laboratory, argv, percent=50) for _ in range(effort.allocation_runs)]
    return [
        Row(
            "time added to one allocation and its free",
            "us",
            [each.difference / NS_PER_US for each in taken],
            {"bytes": BYTES},
            with_edgeshare=[each.hooked / NS_PER_US for each in taken],
            without_edgeshare=[each.bare / NS_PER_US for each in taken],
            target=TARGET,
        )
    ]
