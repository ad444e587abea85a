"""What the hook adds to a launch while the slice is held."""

import shutil
from functools import partial
from pathlib import Path

from bench.hook.paired import build, measure_pairs
from bench.measurement import SCHEDULINGS, Bench, Effort, Measurement
from bench.report import Row, Target
from bench.stage import Laboratory

TARGETS = {1: Target(10), 200: Target(15)}
"""By the number of functions that are launched in turn: a step of a framework launches some hundreds."""

COUNTED_BATCHES = 40
BATCH = 512
"""Launches in a batch of launch.c."""


def measurements(effort: Effort) -> list[Measurement]:
    """Launches cost the host the same, however the GPU orders them."""
    timed = Measurement("added time per launch", partial(measure, effort))
    counted = Measurement("added instructions per launch", measure_instructions)
    return [timed, counted] if shutil.which("valgrind") else [timed]


def setting(functions: int) -> dict[str, str | float]:
    return {"client": "alone, slice held", "functions in turn": functions}


def measure(effort: Effort, bench: Bench) -> list[Row]:
    """Batches through the hook and batches past it take turns in one process."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    program = str(build("launch.c", bench.folder))
    rows = []
    for functions, target in TARGETS.items():
        argv = [program, str(effort.launch_pairs), str(functions)]
        taken = [measure_pairs(laboratory, argv, percent=100) for _ in range(effort.launch_runs)]
        error_ns = measure_pairs(laboratory, [*argv, "none"], percent=100).difference
        row = Row(
            "time added to a launch",
            "ns",
            [each.difference for each in taken],
            setting(functions),
            with_edgeshare=[each.hooked for each in taken],
            without_edgeshare=[each.bare for each in taken],
            target=target,
            note=f"the same with no hook between, which is the method's error: {error_ns:.2f} ns",
        )
        rows.append(row)
    return rows


def measure_instructions(bench: Bench) -> list[Row]:
    """Counts instead of timing, as exact on a busy machine as on one at rest."""
    laboratory = bench.laboratory(SCHEDULINGS[0])
    program = build("launch.c", bench.folder)
    rows = []
    for functions in TARGETS:
        hooked, bare = (
            instructions(laboratory, bench.folder, program, functions, which) for which in ("front", "driver")
        )
        row = Row(
            "instructions added to a launch",
            "",
            [hooked - bare],
            setting(functions),
            with_edgeshare=[hooked],
            without_edgeshare=[bare],
        )
        rows.append(row)
    return rows


def instructions(laboratory: Laboratory, folder: Path, program: Path, functions: int, which: str) -> float:
    """Of one launch, in all that the program's own thread does for it, by callgrind."""
    for old in folder.glob("callgrind*"):
        old.unlink()
    collect = [
        "--separate-threads=yes",
        "--toggle-collect=counted_launches",
        f"--callgrind-out-file={folder}/callgrind",
    ]
    count = [str(program), "count", str(COUNTED_BATCHES), str(functions), which]
    laboratory.lines("counted", ["valgrind", "--tool=callgrind", *collect, *count], 100)
    # The first thread is the program's; the hook has one of its own that looks after the slice.
    text = (folder / "callgrind-01").read_text(encoding="utf-8")
    total = next(line for line in text.splitlines() if line.startswith(("totals:", "summary:")))
    return int(total.split()[1]) / (COUNTED_BATCHES * BATCH)
