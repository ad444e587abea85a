"""How a plain shared library or program is built, here and for other machines: for setup.py and simgpu/setup.py."""

import importlib.util
import os
import shlex
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from setuptools import Command
from setuptools.modified import newer_group

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SOURCES = {".c", ".h", ".S", ".def"}
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", *WARNINGS]
PROCESSOR = sysconfig.get_platform().removeprefix("linux-")
"""What is built for: another than this machine's where ``_PYTHON_HOST_PLATFORM`` says so (linux-aarch64), as it does
where Python itself is cross-compiled; pip then takes other projects' wheels for that one, too."""
OLDEST = f"{PROCESSOR}-linux-gnu.2.17"
"""That processor, with the oldest C library that the hook is loaded by: CentOS 7's, and the first that aarch64 had."""


@dataclass
class Plain:
    """A shared library or program with no Python in it, ``path`` below a root folder. ``link`` holds the linker's flags
    and libraries, with that root as ``{root}``, ``alias`` the name without a version that some programs look for."""

    path: str
    sources: list[str]
    include: list[str]
    link: list[str] = field(default_factory=list)
    alias: str | None = None
    link_with_gcc: list[str] = field(default_factory=list)
    """What zig's linker does by itself, and has no flags for."""


def sources(*folders: str) -> list[str]:
    """Every C and assembly file of these folders and what is below them, sorted, so that a build can be repeated."""
    return sorted(str(path) for folder in folders for kind in ("*.c", "*.S") for path in Path(folder).rglob(kind))


def zig(target: str) -> list[str] | None:
    """The cross-compiler of PyPI's ``ziglang`` for this target; None where it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-g0"]


def compile_plain(command: Command, plain: Plain, root: Path, zig: list[str] | None) -> None:
    """Builds it below ``root``, with zig or the usual C compiler, unless it is newer than all it is made of."""
    target = root / plain.path
    parts = [path for folder in plain.include for path in Path(folder).rglob("*") if path.suffix in SOURCES]
    if not newer_group([str(path) for path in [*parts, Path("setup.py"), Path(__file__)]], str(target)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    compiler = zig or shlex.split(os.environ.get("CC", "cc"))
    link = [flag.format(root=root) for flag in plain.link]
    if zig is None:
        link += plain.link_with_gcc
    include = [f"-I{folder}" for folder in plain.include]
    extra = shlex.split(os.environ.get("CFLAGS", ""))
    # Others may be building it, too.
    fresh = target.with_name(f"{target.name}.{os.getpid()}.new")
    command.spawn([*compiler, *CFLAGS, *extra, *include, "-o", str(fresh), *plain.sources, *link])
    # A rename leaves a library that some process has mapped as it was.
    fresh.replace(target)


class BuildPortable(Command):
    """Builds what ``made`` names with ``ziglang``, for another processor or an older C library."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("target=", None, f"processor, system and C library (default: {OLDEST})"),
        ("folder=", None, "where to (default: build/portable/PROCESSOR)"),
    ]
    made: ClassVar[list[Plain]] = []

    def initialize_options(self) -> None:
        self.target = OLDEST
        self.folder = ""

    def finalize_options(self) -> None:
        self.folder = self.folder or f"build/portable/{self.target.partition('-')[0]}"

    def run(self) -> None:
        compiler = zig(self.target)
        if compiler is None:
            raise SystemExit("setup.py build_portable: ziglang is not installed; run: pip install ziglang")
        for plain in self.made:
            compile_plain(self, plain, Path(self.folder), compiler)
