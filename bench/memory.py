"""What counting memory adds to one allocation and its free."""

from functools import partial
from pathlib import Path

import cuda_hook
from bench.compiler import compile_program
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from edgeshare.units import MIB
from simgpu.native import LIBRARIES

TARGET = Target(1)

PAIRS = 5_000
BYTES = MIB


def measurements(effort: Effort) -> list[Measurement]:
    """One: memory has nothing to do with the order of kernels."""
    return [Measurement("one allocation and its free", partial(measure, effort))]


def measure(effort: Effort, bench: Bench) -> list[Row]:
    """Alternates programs with and without the hook, far below the cap."""
    include = f"-I{Path(cuda_hook.__file__).parent}"
    driver = [f"-L{LIBRARIES}", "-l:libcuda.so.1"]
    program = compile_program(Path(__file__).with_name("alloc.c"), bench.folder, include, *driver)
    laboratory = bench.laboratory(SCHEDULINGS[0])
    argv = [str(program), str(PAIRS), str(BYTES)]
    hooked_ns, bare_ns = [], []
    for _ in range(effort.allocation_runs):
        bare_ns.append(float(laboratory.lines("bare", argv, None)[-1]))
        hooked_ns.append(float(laboratory.lines("hooked", argv, 50)[-1]))
    return [
        Row(
            "time added to one allocation and its free",
            "us",
            [(with_hook - bare) / 1000 for with_hook, bare in zip(hooked_ns, bare_ns, strict=True)],
            {"bytes": BYTES},
            with_edgeshare=[value / 1000 for value in hooked_ns],
            without_edgeshare=[value / 1000 for value in bare_ns],
            target=TARGET,
        )
    ]
