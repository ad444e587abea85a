"""The C parts under the sanitizers: the engine, the machine and the PTX reader by themselves, the driver under
many threads."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.kit.programs.compiled import FLAGS, INCLUDES, compiled

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "c"
COMMON = ("property.c", "invented.c")
MEMORY = "address,undefined"
ENGINE = ["machine/engine/*.c"]
Build = Callable[[str, list[str], str], Path]


@pytest.fixture(scope="module")
def build() -> Build:
    """Compiles a program of these tests: a folder, or one file."""

    def compile_program(name: str, sources: list[str], sanitizers: str) -> Path:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        own = sorted((PROGRAMS / name).glob("*.c")) or [PROGRAMS / f"{name}.c"]
        tried = [each for source in sources for each in sorted((ROOT / "simgpu").glob(source))]
        paths = [str(path) for path in (*own, *(PROGRAMS / common for common in COMMON), *tried)]
        flags = [*FLAGS, "-fno-sanitize-recover=all", f"-fsanitize={sanitizers}", *INCLUDES]
        return compiled(name, [*compiler, *flags, "-o", name, *paths])

    return compile_program


def names(table: str) -> list[str]:
    """The properties that a program tests, from its table."""
    return re.findall(r"\b(?:TEST|PROPERTY)\((\w+)\)", (PROGRAMS / table).read_text())


def hold(program: Path, name: str, counts: Mapping[str, int]) -> None:
    """Holds the engine to one property of a program's."""
    command = [program, name, str(counts["engine_times"])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", names("engine/properties.def"))
def test_engine(build: Build, name: str, counts: Mapping[str, int]) -> None:
    hold(build("engine", ENGINE, MEMORY), name, counts)


@pytest.mark.parametrize("name", names("overlap/properties.def"))
def test_engine_that_overlaps(build: Build, name: str, counts: Mapping[str, int]) -> None:
    hold(build("overlap", ENGINE, MEMORY), name, counts)


@pytest.mark.parametrize("name", names("ptx_test.c"))
def test_ptx(build: Build, name: str) -> None:
    program = build("ptx_test", ["driver/module/ptx.c", "driver/module/tokens.c"], MEMORY)
    done = subprocess.run([program, name], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", names("machine_test.c"))
def test_machine(build: Build, name: str) -> None:
    program = build("machine_test", ["machine/**/*.c"], MEMORY)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        done = subprocess.run([program, name, directory], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("sanitizers", [MEMORY, "thread"])
def test_driver_under_many_threads(build: Build, sanitizers: str) -> None:
    program = build("driver_test", ["driver/**/*.c", "machine/**/*.c"], sanitizers)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        done = subprocess.run([program, directory], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
