"""Programs that time a call through the hook and past it, in one process: what stands between is the difference."""

from dataclasses import dataclass
from pathlib import Path

import cuda_hook
from bench.compiler import compile_program
from bench.figures import median
from bench.stage import Laboratory
from simgpu.native import LIBRARIES


def build(source: str, folder: Path) -> Path:
    """One of the C programs beside this file, built for this run."""
    include = f"-I{Path(cuda_hook.__file__).parent}"
    driver = [f"-L{LIBRARIES}", "-l:libcuda.so.1", "-ldl"]
    return compile_program(Path(__file__).with_name(source), folder, include, *driver)


@dataclass(frozen=True)
class Paired:
    """What one process measured, in ns."""

    hooked: float
    bare: float
    difference: float
    """The median of the differences within the pairs: a disturbance that spoils a batch spoils one pair."""


def measure_pairs(laboratory: Laboratory, argv: list[str], percent: int) -> Paired:
    """Runs a program that prints (through the hook, past it) for each pair of batches."""
    pairs = [tuple(map(float, line.split())) for line in laboratory.lines("hooked", argv, percent)]
    return Paired(
        hooked=median(hooked for hooked, _ in pairs),
        bare=median(bare for _, bare in pairs),
        difference=median(hooked - bare for hooked, bare in pairs),
    )
