"""Builds what is native: in C the hook, its Python face and the simulated driver; compiled from Python what grants
slices. All else is in pyproject.toml."""

import importlib.util
import os
import platform
import shlex
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from mypyc.build import mypycify
from setuptools import Command, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SOURCES = {".c", ".h", ".S", ".def"}
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", *WARNINGS]
EXT_SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))
HERE_BUT_OLDER = f"{platform.machine()}-linux-gnu.2.17"
"""This processor, with the oldest C library that the hook is loaded by: CentOS 7's, and the first that aarch64 had."""


@dataclass
class Plain:
    """A shared library or program with no Python in it. ``link`` holds the linker's flags and libraries, ``alias``
    the name without a version that some programs look for."""

    path: str
    sources: list[str]
    include: list[str]
    link: list[str] = field(default_factory=list)
    alias: str | None = None
    link_with_gcc: list[str] = field(default_factory=list)
    """What zig's linker does by itself, and has no flags for."""


def sources(*folders: str) -> list[str]:
    """Every C and assembly file of these folders and what is below them, sorted, so that a build can be repeated."""
    found = [path for folder in folders for kind in ("*.c", "*.S") for path in (ROOT / folder).rglob(kind)]
    return sorted(str(path.relative_to(ROOT)) for path in found)


PLAIN = [
    Plain(
        "simgpu/lib/libcuda.so.1",
        sources("simgpu/driver", "simgpu/machine"),
        ["cuda_hook", "simgpu"],
        # As the real driver, which reaches its own functions whoever stands in front of them.
        ["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-pthread", "-lrt"],
        alias="libcuda.so",
    ),
    Plain(
        "simgpu/lib/libnvidia-ml.so.1",
        sources("simgpu/nvml", "simgpu/machine"),
        ["cuda_hook", "simgpu"],
        ["-shared", "-Wl,-soname,libnvidia-ml.so.1", "-pthread", "-lrt"],
        alias="libnvidia-ml.so",
    ),
    Plain(
        "simgpu/lib/libsimgpu.so",
        sources("simgpu/observer", "simgpu/machine"),
        ["simgpu"],
        ["-shared", "-Wl,-soname,libsimgpu.so", "-pthread", "-lrt"],
    ),
    Plain(
        "simgpu/bin/burn",
        sources("simgpu/workload"),
        ["cuda_hook", "simgpu"],
        ["-Lsimgpu/lib", "-l:libcuda.so.1", "-pthread", "-ldl", "-lrt"],
    ),
    Plain(
        "simgpu/lib/libsimtpu.so",
        sources("simgpu/tpu/driver"),
        ["simgpu"],
        ["-shared", "-Wl,-soname,libsimtpu.so"],
    ),
    Plain(
        "simgpu/bin/tpuburn",
        sources("simgpu/tpu/workload"),
        ["cuda_hook", "simgpu"],
        ["-Lsimgpu/lib", "-l:libsimtpu.so"],
    ),
    HOOK := Plain(
        "cuda_hook/libedgeshare_cuda.so",
        sources("cuda_hook/src", "cuda_hook/core"),
        ["cuda_hook", "cuda_hook/src"],
        # Every process of a container loads it. Nothing but the C library is linked; a program that has it by dlopen
        # and closes it keeps it, for its thread's sake.
        # No start-up code (the hook has no constructor), and as few mappings as can be: each costs microseconds.
        ["-shared", "-Wl,-soname,libedgeshare_cuda.so", "-Wl,-z,nodelete,-z,lazy,-z,norelro", "-Wl,--hash-style=gnu"],
        link_with_gcc=["-nostartfiles", "-Wl,-z,noseparate-code"],
    ),
]


COMPILED_GROUP = "sharemgr_node"
COMPILED = [
    str(path.relative_to(ROOT))
    for folder in ("sharemgr/node/turns", "sharemgr/node/clients")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "__init__.py"
]
"""What runs from one slice to the next. That happens a thousand times a second on a node of eight GPUs, mostly with
cold caches; compiled by mypyc it takes three quarters of the processor time. Interpreted it does the same."""


def is_compiled() -> bool:
    """Whether what mypyc makes stands here in place already, newer than all that it is made of."""
    group = ROOT / f"{COMPILED_GROUP}__mypyc{EXT_SUFFIX}"
    modules = [ROOT / path.replace(".py", EXT_SUFFIX) for path in COMPILED]
    made_of = [str(ROOT / path) for path in (*COMPILED, "setup.py", "requirements.txt")]
    return all(module.exists() for module in modules) and not newer_group(made_of, str(group))


def zig(target: str) -> list[str] | None:
    """The cross-compiler of PyPI's ``ziglang`` for this target; None where it is not installed."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    return [sys.executable, "-m", "ziglang", "cc", "-target", target, "-g0"]


def compile_plain(command: Command, plain: Plain, target: Path, library_dir: Path, zig: list[str] | None) -> None:
    """Builds one of them at ``target``, with zig or the usual C compiler, unless it is newer than all it is made of."""
    parts = [path for folder in plain.include for path in Path(folder).rglob("*") if path.suffix in SOURCES]
    if not newer_group([str(path) for path in [*parts, ROOT / "setup.py"]], str(target)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    compiler = zig or shlex.split(os.environ.get("CC", "cc"))
    link = [f"-L{library_dir}" if flag == "-Lsimgpu/lib" else flag for flag in plain.link]
    if zig is None:
        link += plain.link_with_gcc
    include = [f"-I{folder}" for folder in plain.include]
    extra = shlex.split(os.environ.get("CFLAGS", ""))
    # Others may be building it, too.
    fresh = target.with_name(f"{target.name}.{os.getpid()}.new")
    command.spawn([*compiler, *CFLAGS, *extra, *include, "-o", str(fresh), *plain.sources, *link])
    # A rename leaves a library that some process has mapped as it was.
    fresh.replace(target)


class BuildNative(build_ext):
    """Builds the extension modules, then the plain libraries, whose folders are package data.

    A wheel goes to other machines, so its hook is built for the oldest C library, where ``ziglang`` is installed.
    """

    # cffi makes a subclass of this. By its name a command that begins anew would find no options, --inplace neither.
    command_name = "build_ext"

    def run(self) -> None:
        # Setuptools changes what this command knows of itself while it runs.
        inplace = bool(self.inplace)
        root = Path() if inplace else Path(self.build_lib)
        with ThreadPoolExecutor(max_workers=1) as beside:
            # Most of the rest is one file, with which a compiler keeps one processor busy.
            plain = beside.submit(self._build_plain, root, inplace)
            self._build_modules(root)
            plain.result()

    def _build_modules(self, root: Path) -> None:
        # Not before, as it takes a minute, and other commands need none of it.
        if not (self.inplace and is_compiled()):
            self.distribution.ext_modules += mypycify(COMPILED, group_name=COMPILED_GROUP, debug_level="0")
            self.reinitialize_command(self, editable_mode=self.editable_mode)
            self.ensure_finalized()
        super().run()
        for module in (ROOT / "sharemgr").rglob("*.so") if self.inplace else ():
            # A module that was moved: its compiled face would be found where its source no longer is.
            if not module.with_name(f"{module.name.partition('.')[0]}.py").exists():
                module.unlink()
        for compiled in root.glob("*__mypyc.*.so"):
            # Newer than its sources, also where these differ in comments alone.
            compiled.touch()

    def _build_plain(self, root: Path, inplace: bool) -> None:
        for plain in PLAIN:
            portable = zig(HERE_BUT_OLDER) if plain is HOOK and not inplace else None
            compile_plain(self, plain, root / plain.path, root / "simgpu/lib", portable)
            if plain.alias and inplace:
                # Only here: a wheel has no symbolic links, and a copy would be a second driver in one process.
                alias = (root / plain.path).with_name(plain.alias)
                alias.unlink(missing_ok=True)
                alias.symlink_to(Path(plain.path).name)

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), *(str(Path(self.build_lib) / plain.path) for plain in PLAIN)]


class BuildPortable(Command):
    """Builds the hook with ``ziglang``, for another processor or an older C library."""

    user_options: ClassVar[list[tuple[str, str | None, str]]] = [
        ("target=", None, f"processor, system and C library (default: {HERE_BUT_OLDER})"),
        ("folder=", None, "where to (default: build/portable/PROCESSOR)"),
        ("with-simgpu", None, "the simulated driver and its program, too"),
    ]
    boolean_options: ClassVar[list[str]] = ["with-simgpu"]

    def initialize_options(self) -> None:
        self.target = HERE_BUT_OLDER
        self.folder = ""
        self.with_simgpu = False

    def finalize_options(self) -> None:
        self.folder = self.folder or f"build/portable/{self.target.partition('-')[0]}"

    def run(self) -> None:
        compiler = zig(self.target)
        if compiler is None:
            raise SystemExit("setup.py build_portable: ziglang is not installed; run: pip install ziglang")
        for plain in PLAIN if self.with_simgpu else [HOOK]:
            compile_plain(self, plain, Path(self.folder) / plain.path, Path(self.folder) / "simgpu/lib", compiler)


setup(
    cffi_modules=["cuda_hook/build_core.py:ffibuilder"],
    cmdclass={"build_ext": BuildNative, "build_portable": BuildPortable},
)
