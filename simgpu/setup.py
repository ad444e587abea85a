"""Builds the simulated drivers, NVML and EdgeTPUs, and programs that use them. All else is in pyproject.toml."""

import re
import sys
from pathlib import Path
from typing import ClassVar

from setuptools import Distribution, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

TREE = Path(__file__).resolve().parent.parent
"""edgeshare's: the declarations of CUDA are its hook's, and so is how a library is built."""
sys.path.insert(0, str(TREE / "cuda_hook"))

from build_plain import BuildPortable, Plain, compile_plain, sources  # noqa: E402

DECLARED = "../cuda_hook"
SIMULATED = [
    Plain(
        "lib/libcuda.so.1",
        sources("driver", "machine"),
        [DECLARED, "."],
        # As the real driver, which reaches its own functions whoever stands in front of them.
        ["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-pthread", "-lrt"],
        alias="libcuda.so",
    ),
    Plain(
        "lib/libnvidia-ml.so.1",
        sources("nvml", "machine"),
        [DECLARED, "."],
        ["-shared", "-Wl,-soname,libnvidia-ml.so.1", "-pthread", "-lrt"],
        alias="libnvidia-ml.so",
    ),
    Plain(
        "lib/libsimgpu.so",
        sources("observer", "machine"),
        ["."],
        ["-shared", "-Wl,-soname,libsimgpu.so", "-pthread", "-lrt"],
    ),
    Plain(
        "bin/burn",
        sources("workload"),
        [DECLARED, "."],
        ["-L{root}/lib", "-l:libcuda.so.1", "-pthread", "-ldl", "-lrt"],
    ),
    Plain(
        "lib/libsimtpu.so",
        sources("tpu/driver"),
        ["."],
        ["-shared", "-Wl,-soname,libsimtpu.so"],
    ),
    Plain(
        "bin/tpuburn",
        sources("tpu/workload"),
        [DECLARED, "."],
        ["-L{root}/lib", "-l:libsimtpu.so"],
    ),
]


class OfOneProcessor(Distribution):
    """A wheel of it is for one kind of machine, though Python imports nothing that is compiled."""

    def has_ext_modules(self) -> bool:
        return True


class BuildSimulated(build_ext):
    """Builds all of it."""

    def run(self) -> None:
        root = Path() if self.inplace else Path(self.build_lib) / "simgpu"
        for plain in SIMULATED:
            compile_plain(self, plain, root, None)
            if plain.alias and self.inplace:
                # Only here: a wheel has no symbolic links, and a copy would be a second driver in one process.
                alias = (root / plain.path).with_name(plain.alias)
                alias.unlink(missing_ok=True)
                alias.symlink_to(Path(plain.path).name)

    def get_outputs(self) -> list[str]:
        return [str(Path(self.build_lib) / "simgpu" / plain.path) for plain in SIMULATED]


class BuildModules(build_py):
    """All but this script, which stands among them."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        return [each for each in super().find_package_modules(package, package_dir) if each[1] != "setup"]


class BuildPortableSimulated(BuildPortable):
    """Builds all of it for another processor or an older C library."""

    made: ClassVar[list[Plain]] = SIMULATED


version = re.search(r'__version__ = "(.+)"', (TREE / "edgeshare/__init__.py").read_text())
assert version is not None
setup(
    version=version[1],
    install_requires=[f"edgeshare=={version[1]}"],
    distclass=OfOneProcessor,
    options={"build": {"build_base": "../build/simgpu"}},  # here all would look like the package's
    cmdclass={"build_py": BuildModules, "build_ext": BuildSimulated, "build_portable": BuildPortableSimulated},
)
