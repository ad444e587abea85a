"""Builds the small C programs that the bench times with, for this run alone."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from edgeshare.contract.errors import Unavailable

FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror")


def compile_program(source: Path, folder: Path, *flags: str) -> Path:
    """Compiles one source file, or all C files of a folder, into ``folder``; raises Unavailable where that fails."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        raise Unavailable(f"no C compiler {compiler[0]!r}: install gcc, or set CC")
    program = folder / source.stem
    sources = sorted(source.glob("*.c")) if source.is_dir() else [source]
    done = subprocess.run(
        [*compiler, *FLAGS, "-o", program, *sources, *flags], stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "the compiler failed")
        raise Unavailable(f"{source} does not compile: {first}")
    return program
