"""The hook for other processors and older C libraries, and what runs programs of another processor here."""

import importlib.util
import platform
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.kit.hook.stage import ROOT
from tests.kit.processes.errors import NodeError
from tests.kit.programs.compiled import compiled
from tests.kit.programs.packages import unpacked

GLIBC_OLDEST = (2, 17)


@cache
def portable(processor: str, project: str = ".") -> Path:
    """The folder with the hook for this processor, or with the simulated drivers (the project in ``simgpu``); skips the
    test where there is no compiler."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not installed (pip install ziglang): no compiler for other processors and C libraries")
    target = f"{processor}-linux-gnu.{GLIBC_OLDEST[0]}.{GLIBC_OLDEST[1]}"
    build = [sys.executable, "setup.py", "-q", "build_portable", "--target", target]
    in_tree = 'folder=$PWD; cd "$0/$1" && shift && exec "$@" --folder "$folder"'
    return compiled(".", ["sh", "-c", in_tree, str(ROOT), project, *build])


def debian(package: str) -> Path:
    """What a Debian package holds, unpacked and not installed; skips the test where it cannot be had."""
    try:
        return unpacked(package)
    except NodeError as error:
        pytest.skip(f"Debian's {package} cannot be had: {error}")


class Emulator:
    """Runs aarch64 programs."""

    def __init__(self) -> None:
        self._prefix: list[str] = []
        if platform.machine() != "aarch64":
            installed = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
            program = installed or str(debian("qemu-user-static") / "usr/bin/qemu-aarch64-static")
            self._prefix = [program, "-L", str(debian("libc6-arm64-cross") / "usr/aarch64-linux-gnu")]

    def command(self, program: Path) -> list[str]:
        """How a program is called."""
        return [*self._prefix, str(program)]

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables for the program: those that the loader reads must not reach the emulator itself."""
        if not self._prefix:
            return variables
        return {"QEMU_SET_ENV": ",".join(f"{name}={value}" for name, value in variables.items())}
