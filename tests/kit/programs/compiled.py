"""What tests compile of this tree, kept in the cache folder: nothing is compiled again whose sources have not changed,
in a fresh clone either, wherever that is."""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests.kit.programs.cache import cache_dir, make_once

ROOT = Path(__file__).parents[3]
KEPT = cache_dir() / "compiled"
UNUSED_S = 14 * 24 * 3600
"""What nobody has asked for so long is removed."""

BUILT_WITH = ("setup.py", "simgpu/setup.py", "cuda_hook/build_plain.py", "requirements-dev.txt")
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
def _compiler() -> bytes:
    return subprocess.run(["gcc", "-v"], check=True, stderr=subprocess.PIPE).stderr


@cache
def _state_of(root: Path, folder: Path) -> str:
    """Tells one state of all that a compiler may read of a folder from another; of the tree's root that is the product,
    and what is built with."""
    paths = [root / name for name in BUILT_WITH] if folder == root else []
    for each in (root / "cuda_hook", root / "simgpu") if folder == root else (folder,):
        paths += [*sorted(each.rglob("*.[chS]")), *sorted(each.rglob("*.def"))]
    digest = hashlib.sha256()
    for path in paths:
        text = path.read_bytes()
        digest.update(f"{path.relative_to(root)} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def key_of(name: str, commands: Sequence[Sequence[str]], root: Path = ROOT) -> str:
    """Is another where one of the commands is, or what it may read: all in the folders in which its sources are, and
    where it looks for what they include. Where the tree stands does not matter."""
    placeless, read = [], set()
    for word in itertools.chain(*commands):
        place = Path(word.removeprefix("-I").removeprefix("-L").removeprefix("-Wl,-rpath-link,"))
        of_tree = place.is_absolute() and place.is_relative_to(root) and place.exists()
        if of_tree:
            read.add(place if place.is_dir() else place.parent)
        placeless.append(word.replace(str(root), "", 1) if of_tree else word)
    states = [_state_of(root, folder) for folder in sorted(read)]
    return hashlib.sha256(json.dumps([name, placeless, states]).encode() + _compiler()).hexdigest()


def compiled(name: str, *commands: Sequence[str]) -> Path:
    """The file of that name which these commands make in the folder that they are run in. Raises CalledProcessError."""

    def make(folder: Path) -> None:
        _remove_unused()
        folder.mkdir()
        for command in commands:
            _run(command, folder)

    return _kept(key_of(name, commands, ROOT), make) / name


def _kept(key: str, make: Callable[[Path], None]) -> Path:
    while True:
        folder = make_once(KEPT / key, make)
        # Somebody else may have removed it just now, as one that was not used for long.
        with suppress(FileNotFoundError):
            os.utime(folder)
            return folder


def _run(command: Sequence[str], folder: Path) -> None:
    """What the compiler makes of sources, and of nothing in the folder, is kept by the text that it sees, too:
    most of what lies where a program looks for what it includes it does not include."""
    # What is told of a source is told from the tree's root on, be it of another tree.
    placeless = [*command, *((f"-ffile-prefix-map={ROOT}=.",) if "-g" in command else ())]
    links = "-L." in command or any(Path(word).parent == Path() and (folder / word).is_file() for word in command)
    if command[0] != "gcc" or "-o" not in command or links or not any(word.endswith((".c", ".S")) for word in command):
        subprocess.run(placeless, check=True, cwd=folder)
        return
    at = command.index("-o")
    output = command[at + 1]
    told = [*command[:at], *command[at + 2 :]]
    text = subprocess.run([*told, "-E"], check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout
    root = str(ROOT).encode()
    seen = hashlib.sha256(json.dumps(command).encode().replace(root, b"") + text.replace(root, b"") + _compiler())

    def make(made: Path) -> None:
        made.mkdir()
        subprocess.run(placeless, check=True, cwd=made)

    while not (folder / output).exists():
        with suppress(FileNotFoundError):
            os.link(_kept(seen.hexdigest(), make) / output, folder / output)


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
