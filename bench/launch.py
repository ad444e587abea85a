"""What the hook adds to a launch while the slice is held."""

import shutil
from functools import partial
from pathlib import Path

import cuda_hook
from bench.compiler import compile_program
from bench.figures import median
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Laboratory
from simgpu.native import LIBRARIES

TARGET = Target(10)

COUNTED_BATCHES = 40
BATCH = 512
"""Launches in a batch of launch.c."""


def measurements(effort: Effort) -> list[Measurement]:
    """Launches cost the host the same, however the GPU orders them."""
    timed = Measurement("added time per launch", partial(measure, effort))
    counted = Measurement("added instructions per launch", measure_instructions)
    return [timed, counted] if shutil.which("valgrind") else [timed]


def measure(effort: Effort, bench: Bench) -> list[Row]:
    """Batches through the hook and batches past it take turns in one process; of each process the median of the
    differences within its pairs."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    argv = [str(build(bench.folder)), str(effort.launch_pairs)]
    differences, hooked, bare, errors = [], [], [], []
    for _ in range(effort.launch_runs):
        pairs = paired_ns(laboratory, argv)
        hooked.append(median(front for front, _ in pairs))
        bare.append(median(driver for _, driver in pairs))
        differences.append(median(front - driver for front, driver in pairs))
        errors.append(median(front - driver for front, driver in paired_ns(laboratory, [*argv, "none"])))
    note = f"the same with no hook between, which is the method's error: {median(errors):.2f} ns"
    return [
        Row(
            "time added to a launch",
            "ns",
            differences,
            {"client": "alone, slice held"},
            with_edgeshare=hooked,
            without_edgeshare=bare,
            target=TARGET,
            note=note,
        )
    ]


def paired_ns(laboratory: Laboratory, argv: list[str]) -> list[tuple[float, float]]:
    """(Through the hook, past it) of each pair of batches."""
    lines = laboratory.lines("hooked", argv, 100)
    return [(float(front), float(driver)) for front, driver in map(str.split, lines)]


def measure_instructions(bench: Bench) -> list[Row]:
    """Counts instead of timing, as exact on a busy machine as on one at rest."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    program = build(bench.folder)
    hooked, bare = (instructions(laboratory, bench.folder, program, which) for which in ("front", "driver"))
    return [
        Row(
            "instructions added to a launch",
            "",
            [hooked - bare],
            {"client": "alone, slice held"},
            with_edgeshare=[hooked],
            without_edgeshare=[bare],
        )
    ]


def instructions(laboratory: Laboratory, folder: Path, program: Path, which: str) -> float:
    """Of one launch, in all that the program's own thread does for it, by callgrind."""
    for old in folder.glob("callgrind*"):
        old.unlink()
    collect = [
        "--separate-threads=yes",
        "--toggle-collect=counted_launches",
        f"--callgrind-out-file={folder}/callgrind",
    ]
    argv = ["valgrind", "--tool=callgrind", *collect, str(program), "count", str(COUNTED_BATCHES), which]
    laboratory.lines("counted", argv, 100)
    # The first thread is the program's; the hook has one of its own that looks after the slice.
    text = (folder / "callgrind-01").read_text(encoding="utf-8")
    total = next(line for line in text.splitlines() if line.startswith(("totals:", "summary:")))
    return int(total.split()[1]) / (COUNTED_BATCHES * BATCH)


def build(folder: Path) -> Path:
    """The C program beside this file, built for this run."""
    include = f"-I{Path(cuda_hook.__file__).parent}"
    driver = [f"-L{LIBRARIES}", "-l:libcuda.so.1", "-ldl"]
    return compile_program(Path(__file__).with_name("launch.c"), folder, include, *driver)
