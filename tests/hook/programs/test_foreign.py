"""Programs for which the hook was not made, preloaded into all the same: they run as without it."""

import platform
import subprocess
from pathlib import Path

import pytest

from tests.kit.hook.portable import debian, portable
from tests.kit.hook.stage import HOOK, SOURCES

FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O1"]
HOOKS = ["here", "x86_64"]


def ran(*command: str | Path, **environment: str) -> tuple[int, str, str]:
    result = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


@pytest.fixture(params=HOOKS)
def hook(request: pytest.FixtureRequest) -> Path:
    """As `make build` has it, and as a wheel has it."""
    return HOOK if request.param == "here" else portable(platform.machine()) / "cuda_hook" / HOOK.name


@pytest.mark.parametrize("now", ["", "1"], ids=["lazily", "at_once"])
def test_a_program_of_another_c_library_does_not_notice(hook: Path, now: str, tmp_path: Path) -> None:
    """musl has no versions of symbols, and its loader ends a process for a name that it does not find."""
    if platform.machine() != "x86_64":
        pytest.skip("Debian's package of musl is unpacked for x86-64 here")
    musl = debian("musl") / "lib/x86_64-linux-musl/libc.so"
    development = debian("musl-dev") / "usr"
    start = development / "lib/x86_64-linux-musl"
    headers = ["-nostdinc", "-isystem", development / "include/x86_64-linux-musl"]
    parts = [start / "crt1.o", start / "crti.o", SOURCES / "foreign/small.c", musl, start / "crtn.o"]
    flags = [*FLAGS, "-nostdlib", "-no-pie", "-fno-pie", *headers]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "program", *parts], check=True)
    for environment in ({}, {"LD_PRELOAD": str(hook), "LD_BIND_NOW": now}):
        assert ran(musl, tmp_path / "program", **environment) == (0, "dynamic\n", "")


def test_a_program_with_its_libraries_in_it_does_not_notice(hook: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    made = subprocess.run(
        ["gcc", *FLAGS, "-pthread", "-static", "-DSTATIC", "-o", program, SOURCES / "foreign/small.c"],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        pytest.skip(f"there is no C library to put into a program here: {made.stderr.strip()[-200:]}")
    assert ran(program, LD_PRELOAD=str(hook)) == (0, "static\n", "")


def test_a_program_started_by_its_loader_does_not_notice(hook: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    subprocess.run(["gcc", *FLAGS, "-pthread", "-o", program, SOURCES / "foreign/small.c", "-ldl"], check=True)
    loader = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout.partition(
        "interpreter: "
    )[2]
    for command in ([str(program)], [loader.partition("]")[0], str(program)]):
        assert ran(*command, LD_PRELOAD=str(hook)) == (0, "dynamic\n", "")


def test_a_program_of_32_bits_runs_as_ever(hook: Path, tmp_path: Path) -> None:
    """Its loader says that it cannot use the hook, and goes on."""
    if platform.machine() != "x86_64":
        pytest.skip("only x86-64 has programs of 32 bits of its own")
    libraries = debian("libc6-i386") / "lib32"
    program = tmp_path / "program"
    flags = ["-m32", "-nostdlib", "-fno-pie", "-no-pie", "-fno-stack-protector"]
    parts = [SOURCES / "foreign/narrow.c", libraries / "libc.so.6", libraries / "ld-linux.so.2"]
    subprocess.run(["gcc", *flags, "-o", program, *parts], check=True)
    command = [libraries / "ld-linux.so.2", "--library-path", libraries, program]
    bare = ran(*command)
    if bare[0] != 0:
        pytest.skip(f"this kernel runs no programs of 32 bits: {bare}")
    status, out, errors = ran(*command, LD_PRELOAD=str(hook))
    assert (status, out) == (0, "narrow\n")
    assert errors == "" or "wrong ELF class" in errors
