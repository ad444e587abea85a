"""What tests compile of this tree, kept in the cache folder: nothing is compiled again that has not changed, in a fresh
clone at the same place either."""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from onenode.cache import cache_dir, make_once

ROOT = Path(__file__).parent.parent
KEPT = cache_dir() / "compiled"
UNUSED_S = 14 * 24 * 3600
"""What nobody has asked for so long is removed."""

HOOK_SOURCES = tuple(
    sorted(path for folder in ("src", "core") for path in (ROOT / "cuda_hook" / folder).rglob("*.[cS]"))
)
INCLUDES = tuple(f"-I{ROOT / folder}" for folder in ("cuda_hook", "simgpu"))
HOOK_INCLUDES = tuple(f"-I{ROOT / folder}" for folder in ("cuda_hook", "cuda_hook/src"))
FLAGS = ("-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror")

SANITIZERS = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
NOT_SANITIZED = (
    *("doors.S", "doors.c", "substitutes.c", "symbols.c", "tpu_calls.c", "next.c"),
    *("exports.c", "lookups.c", "objects.c"),
)
"""What the sanitizer itself calls while it starts."""


@cache
def _sources() -> str:
    """Tells one state of all that a compiler may read of this tree, and of the compilers, from another."""
    digest = hashlib.sha256(subprocess.run(["gcc", "-v"], check=True, stderr=subprocess.PIPE).stderr)
    paths = [ROOT / "setup.py", ROOT / "requirements-dev.txt"]
    for folder in ("cuda_hook", "simgpu", "tests"):
        paths += [*sorted((ROOT / folder).rglob("*.[chS]")), *sorted((ROOT / folder).rglob("*.def"))]
    for path in paths:
        text = path.read_bytes()
        digest.update(f"{path} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def compiled(name: str, *commands: Sequence[str]) -> Path:
    """The file of that name which these commands make in the folder that they are run in. Raises CalledProcessError."""
    key = hashlib.sha256(f"{_sources()}\n{json.dumps([name, *commands])}".encode()).hexdigest()

    def make(folder: Path) -> None:
        _remove_unused()
        folder.mkdir()
        for command in commands:
            subprocess.run(command, check=True, cwd=folder)

    while True:
        folder = make_once(KEPT / key, make)
        # Somebody else may have removed it just now, as one that was not used for long.
        with suppress(FileNotFoundError):
            os.utime(folder)
            return folder / name


def _remove_unused() -> None:
    for folder in KEPT.iterdir():
        # What others are just making or removing may be gone when it is looked at. Locks stay: whoever holds one would
        # not know that it is nobody's any more.
        with suppress(FileNotFoundError):
            if folder.is_dir() and folder.stat().st_mtime < time.time() - UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)


def sanitizer_runtime(kind: str) -> Path:
    """The library that a program is started with where not all of it is built with the sanitizer; skips the test where
    the compiler has none."""
    command = ["gcc", f"-print-file-name={SANITIZERS[kind]}"]
    found = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    if not found.is_absolute():
        pytest.skip(f"the compiler has no {SANITIZERS[kind]}")
    return found


def sanitized_hook(kind: str) -> Path:
    """The hook, built with a sanitizer."""
    commands, objects = [], []
    for source in HOOK_SOURCES:
        objects.append(f"{source.name}.o")
        flags = [] if source.name in NOT_SANITIZED else [f"-fsanitize={kind}", "-fno-omit-frame-pointer"]
        hook_flags = ["-fPIC", "-fvisibility=hidden", *HOOK_INCLUDES]
        commands.append(["gcc", *FLAGS, *hook_flags, *flags, "-c", str(source), "-o", objects[-1]])
    library = "libedgeshare_cuda.so"
    return compiled(library, *commands, ["gcc", "-shared", f"-fsanitize={kind}", "-o", library, *objects, "-ldl"])
