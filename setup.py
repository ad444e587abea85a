"""Builds what is written in C: the hook, its Python face, and the simulated driver. All else is in pyproject.toml."""

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SOURCES = {".c", ".h", ".S", ".def"}
CFLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", *WARNINGS]


@dataclass
class Plain:
    """A shared library or program with no Python in it. ``link`` holds the linker's flags and libraries, ``alias``
    the name without a version that some programs look for."""

    path: str
    sources: list[str]
    include: list[str]
    link: list[str] = field(default_factory=list)
    program: bool = False
    alias: str | None = None


def sources(*folders: str) -> list[str]:
    """Every C and assembly file right in these folders, sorted, so that a build can be repeated."""
    found = [path for folder in folders for kind in ("*.c", "*.S") for path in (ROOT / folder).glob(kind)]
    return sorted(str(path.relative_to(ROOT)) for path in found)


PLAIN = [
    Plain(
        "simgpu/lib/libcuda.so.1",
        sources("simgpu/driver", "simgpu/machine"),
        ["cuda_hook", "simgpu"],
        # As the real driver, which reaches its own functions whoever stands in front of them.
        ["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-lrt"],
        alias="libcuda.so",
    ),
    Plain(
        "simgpu/lib/libnvidia-ml.so.1",
        sources("simgpu/nvml", "simgpu/machine"),
        ["cuda_hook", "simgpu"],
        ["-shared", "-Wl,-soname,libnvidia-ml.so.1", "-lrt"],
        alias="libnvidia-ml.so",
    ),
    Plain(
        "simgpu/lib/libsimgpu.so",
        sources("simgpu/observer", "simgpu/machine"),
        ["simgpu"],
        ["-shared", "-Wl,-soname,libsimgpu.so", "-lrt"],
    ),
    Plain(
        "simgpu/bin/burn",
        sources("simgpu/workload"),
        ["cuda_hook", "simgpu"],
        ["-Lsimgpu/lib", "-l:libcuda.so.1", "-ldl", "-lrt"],
        program=True,
    ),
    Plain(
        "cuda_hook/libedgeshare_cuda.so",
        sources("cuda_hook/src", "cuda_hook/core"),
        ["cuda_hook"],
        ["-shared", "-Wl,-soname,libedgeshare_cuda.so", "-Wl,-z,relro", "-ldl"],
    ),
]


class BuildNative(build_ext):
    """Builds the extension modules, then the plain libraries, whose folders are package data."""

    def run(self) -> None:
        super().run()
        for plain in PLAIN:
            self.build_plain(plain)

    def build_plain(self, plain: Plain) -> None:
        target = Path(plain.path) if self.inplace else Path(self.build_lib) / plain.path
        library_dir = Path("simgpu/lib") if self.inplace else Path(self.build_lib) / "simgpu/lib"
        if plain.alias and self.inplace:
            # Only here: a wheel has no symbolic links, and a copy would be a second driver in one process.
            target.parent.mkdir(parents=True, exist_ok=True)
            link_path = target.with_name(plain.alias)
            link_path.unlink(missing_ok=True)
            link_path.symlink_to(target.name)
        parts = [path for folder in plain.include for path in Path(folder).rglob("*") if path.suffix in SOURCES]
        if not newer_group([str(path) for path in [*parts, ROOT / "setup.py"]], str(target)):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        link = [f"-L{library_dir}" if flag == "-Lsimgpu/lib" else flag for flag in plain.link]
        include = [f"-I{folder}" for folder in plain.include]
        compiler = shlex.split(os.environ.get("CC", "cc"))
        extra = shlex.split(os.environ.get("CFLAGS", ""))
        fresh = target.with_name(target.name + ".new")
        self.spawn([*compiler, *CFLAGS, *extra, *include, "-o", str(fresh), *plain.sources, *link])
        # A rename leaves a library that some process has mapped as it was.
        fresh.replace(target)

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), *(str(Path(self.build_lib) / plain.path) for plain in PLAIN)]


setup(
    cffi_modules=["cuda_hook/build_core.py:ffibuilder"],
    cmdclass={"build_ext": BuildNative},
)
