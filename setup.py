"""Builds what is native: in C the hook and its Python face; compiled from Python what grants slices. All else is in
pyproject.toml; the simulated drivers are a project of their own (simgpu/)."""

import os
import platform
import shlex
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from mypyc.build import mypycify
from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "cuda_hook"))  # not as a package, which loads what is to be built here

from build_plain import OLDEST, PROCESSOR, BuildPortable, Plain, compile_plain, sources, zig  # noqa: E402

EXT_SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX")).replace(platform.machine(), PROCESSOR)
HOOK = Plain(
    "cuda_hook/libedgeshare_cuda.so",
    sources("cuda_hook/src", "cuda_hook/core"),
    ["cuda_hook", "cuda_hook/src"],
    # Every process of a container loads it. Nothing but the C library is linked; a program that has it by dlopen
    # and closes it keeps it, for its thread's sake.
    # No start-up code (the hook has no constructor), and as few mappings as can be: each costs microseconds.
    ["-shared", "-Wl,-soname,libedgeshare_cuda.so", "-Wl,-z,nodelete,-z,lazy,-z,norelro", "-Wl,--hash-style=gnu"],
    link_with_gcc=["-nostartfiles", "-Wl,-z,noseparate-code"],
)


COMPILED_GROUP = "sharemgr_node"
COMPILED = [
    str(path.relative_to(ROOT))
    for folder in ("sharemgr/node/turns", "sharemgr/node/clients")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "__init__.py"
]
"""What runs from one slice to the next. That happens a thousand times a second on a node of eight GPUs, mostly with
cold caches; compiled by mypyc it takes three quarters of the processor time. Interpreted it does the same."""


def compile_for_another() -> None:
    """Has modules compiled for PROCESSOR, which is not this machine's, and named as a Python there looks for them."""
    compiler = zig(OLDEST)
    if compiler is None:
        raise SystemExit(f"setup.py: nothing here compiles for {PROCESSOR}; run: pip install ziglang")
    # Python's headers differ from one processor to the other where Debian has them alone: each has a folder of its own
    # beside Python's. The C library's are zig's, so that others of its folder come after them.
    headers = Path(sysconfig.get_path("include")).parent
    compiler += ["-idirafter", str(headers)]
    os.environ |= {
        "CC": shlex.join(compiler),
        "LDSHARED": shlex.join([*compiler, "-shared"]),
        "SETUPTOOLS_EXT_SUFFIX": EXT_SUFFIX,
    }


def is_compiled() -> bool:
    """Whether what mypyc makes stands here in place already, newer than all that it is made of."""
    group = ROOT / f"{COMPILED_GROUP}__mypyc{EXT_SUFFIX}"
    modules = [ROOT / path.replace(".py", EXT_SUFFIX) for path in COMPILED]
    made_of = [str(ROOT / path) for path in (*COMPILED, "setup.py", "requirements.txt")]
    return all(module.exists() for module in modules) and not newer_group(made_of, str(group))


class BuildNative(build_ext):
    """Builds the extension modules, and the hook beside them.

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
            hook = beside.submit(self._build_hook, root, inplace)
            self._build_modules(root)
            hook.result()

    def _build_modules(self, root: Path) -> None:
        begun_s = time.time()
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
            # Newer than its sources, also where these differ in comments alone, but for one that was changed meanwhile.
            os.utime(compiled, (begun_s, begun_s))

    def _build_hook(self, root: Path, inplace: bool) -> None:
        compile_plain(self, HOOK, root, None if inplace else zig(OLDEST))

    def get_outputs(self) -> list[str]:
        return [*super().get_outputs(), str(Path(self.build_lib) / HOOK.path)]


class BuildPortableHook(BuildPortable):
    """The hook alone."""

    made: ClassVar[list[Plain]] = [HOOK]


if platform.machine() != PROCESSOR:
    compile_for_another()

setup(
    cffi_modules=["cuda_hook/build_core.py:ffibuilder"],
    cmdclass={"build_ext": BuildNative, "build_portable": BuildPortableHook},
)
