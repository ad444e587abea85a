"""What `make build` makes is kept in the cache folder, for the next clone of the same sources.

Usage: tools/built.py take|keep TREE FOLDER
"""

import hashlib
import os
import platform
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

SOURCES = ("*.py", "*.c", "*.h", "*.S", "*.def")
READ = ("setup.py", "pyproject.toml", "requirements-dev.txt", "cuda_hook", "edgeshare", "sharemgr", "simgpu")
"""What is compiled, what mypyc reads the types of, and what both are done by."""

MADE = (
    *("build/__native*", "build/temp.*/**/*", "*__mypyc.*.so", "cuda_hook/*.so", "sharemgr/**/*.so"),
    *("simgpu/lib/*", "simgpu/bin/*"),
)
BEGUN = "build/.begun"
"""As old as the build."""

KEPT = 5
"""So many builds at most, of 20 MB each."""


def found(tree: Path, patterns: Iterable[str]) -> list[str]:
    """The files and links of these names, from the tree's root on."""
    paths = {path for pattern in patterns for path in tree.glob(pattern) if path.is_symlink() or path.is_file()}
    return sorted(str(path.relative_to(tree)) for path in paths)


def sources(tree: Path) -> list[str]:
    """What is compiled, and by what."""
    patterns = [f"{each}/**/{kind}" for each in READ for kind in SOURCES if (tree / each).is_dir()]
    return found(tree, [*READ, *patterns])


def key(tree: Path) -> str:
    """Is another where a source is, or what compiles it."""
    compiler = [*shlex.split(os.environ.get("CC", "cc")), "-v"]
    said = subprocess.run(compiler, check=True, capture_output=True).stderr
    digest = hashlib.sha256(f"{sys.version} {platform.platform()} {os.environ.get('CFLAGS')}".encode() + said)
    for name in sources(tree):
        text = (tree / name).read_bytes()
        digest.update(f"\0{name} {len(text)}\0".encode() + text)
    return digest.hexdigest()


def take(tree: Path, archive: Path) -> None:
    """Begins a build: puts in place what was made of these sources before, newer than all of them."""
    (tree / BEGUN).parent.mkdir(exist_ok=True)
    (tree / BEGUN).touch()
    if not archive.exists():
        return
    archive.touch()
    with tarfile.open(archive) as kept:
        kept.extractall(tree, filter="tar")
        for name in kept.getnames():
            os.utime(tree / name, follow_symlinks=False)


def keep(tree: Path, archive: Path) -> None:
    """Ends a build: keeps what was made of these sources, whole or not at all, and removes what was used least lately.
    Nothing is kept where something stood there before, or a source was changed meanwhile: that may be of other sources.
    """
    begun_ns = (tree / BEGUN).stat().st_mtime_ns
    made_names = found(tree, MADE)
    if archive.exists() or any((tree / name).lstat().st_mtime_ns < begun_ns for name in made_names):
        return
    if any((tree / name).lstat().st_mtime_ns > begun_ns for name in sources(tree)):
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        with tarfile.open(made, "w") as tar:
            for name in made_names:
                tar.add(tree / name, name)
        made.replace(archive)
    for older in sorted(archive.parent.glob("*.tar"), key=lambda path: path.stat().st_mtime_ns)[:-KEPT]:
        older.unlink(missing_ok=True)


def main(words: Sequence[str]) -> None:
    """Does what was asked for."""
    what, tree, folder = words
    archive = Path(folder) / f"{key(Path(tree))}.tar"
    {"take": take, "keep": keep}[what](Path(tree), archive)


if __name__ == "__main__":
    main(sys.argv[1:])
