"""The hook's files stand on floors: cuda_hook/src/README.md says which may use which, and nothing runs upwards or in a
circle, neither what is included nor what the linker finds."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.kit.programs.compiled import FLAGS, HOOK_INCLUDES, HOOK_SOURCES, ROOT, compiled

SRC = ROOT / "cuda_hook" / "src"
CORE = "core"
"""Beneath all floors."""
EVENTS = "hook.c"
"""Alone defines what a lower floor calls for the sake of a higher one (base/events.h), so it may use all."""
KERNEL = re.compile(r"\b(?:syscall|prctl|madvise|getpid|gettid|tgkill|dup\d?|readlink|ioctl|fcntl)\((?!SYS_futex, )")
IN_FRONT = {"tpu/next.c", "tpu/next.h", "tpu/tpu_calls.c"}
"""Make the kernel's call where no function of the C library's stands behind theirs."""


def floor_of(path: Path) -> str:
    """The floor on which a file of the hook stands."""
    return CORE if path.is_relative_to(SRC.parent / "core") else path.relative_to(SRC).parts[0]


def name_of(path: Path) -> str:
    """A file, its header and its half in assembly are one; a list is by itself."""
    return f"{floor_of(path)}/{path.name if path.suffix == '.def' else path.stem}"


@pytest.fixture(scope="module")
def may_use() -> dict[str, set[str]]:
    """What each floor may use besides itself, as the table has it."""
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\| ([^|]+) \| `([\w.]+)` \|$", (SRC / "README.md").read_text(), re.MULTILINE)
    for floor, _, first in rows:
        assert (SRC / floor / first).exists(), f"README.md begins at {floor}/{first}, which is not there"
    return {floor: {CORE, *re.findall(r"`(\w+)`", used)} for floor, used, _ in rows}


@pytest.fixture(scope="module")
def includes() -> dict[Path, set[Path]]:
    """What each file of the hook includes of the hook."""
    files = [path for path in SRC.rglob("*") if path.suffix in (".c", ".h", ".S", ".def")]
    found: dict[Path, set[Path]] = {}
    for path in files:
        named = re.findall(r'^#\s*include "([^"]+)"', path.read_text(), re.MULTILINE)
        places = [base / name for name in named for base in (SRC, SRC.parent) if (base / name).exists()]
        found[path] = {place for place in places if place.parent != SRC.parent}
    return found


@pytest.fixture(scope="module")
def symbols() -> dict[Path, set[Path]]:
    """What each file's object needs of the other files' objects."""
    names = {source: f"{source.parent.name}-{source.name}.o" for source in HOOK_SOURCES}
    flags = ["gcc", *FLAGS, "-O0", "-fPIC", "-fvisibility=hidden", *HOOK_INCLUDES, "-c"]
    commands = [[*flags, str(source), "-o", name] for source, name in names.items()]
    folder = compiled("done", *commands, ["touch", "done"]).parent
    defines: dict[str, Path] = {}
    needs: dict[Path, set[str]] = defaultdict(set)
    for source, name in names.items():
        listed = subprocess.run(["nm", str(folder / name)], check=True, capture_output=True, text=True).stdout
        for line in listed.splitlines():
            *_, kind, symbol = line.split()
            if kind == "U":
                needs[source].add(symbol)
            elif kind.isupper():
                defines[symbol] = source
    return {source: {defines[name] for name in names if name in defines} for source, names in needs.items()}


def test_every_folder_is_a_floor_and_every_floor_a_folder(may_use: dict[str, set[str]]) -> None:
    assert set(may_use) == {path.name for path in SRC.iterdir() if path.is_dir()}


def test_floors_have_an_order(may_use: dict[str, set[str]]) -> None:
    placed = {CORE}
    for floor, used in may_use.items():
        assert used <= placed, f"{floor} uses what stands above it in the table"
        placed.add(floor)


@pytest.mark.parametrize("kind", ["includes", "symbols"])
def test_nothing_runs_upwards(kind: str, may_use: dict[str, set[str]], request: pytest.FixtureRequest) -> None:
    needs: dict[Path, set[Path]] = request.getfixturevalue(kind)
    inner = [path for path in needs if floor_of(path) not in (CORE, EVENTS)]
    assert len(inner) > len(may_use)
    upwards = [
        f"{path.relative_to(SRC)} needs {used.relative_to(SRC.parent)}"
        for path in inner
        for used in needs[path]
        if floor_of(used) not in {floor_of(path), EVENTS, *may_use[floor_of(path)]}
    ]
    assert upwards == []


def asking(folder: Path) -> dict[str, list[str]]:
    """Which files of a folder ask the kernel for something but memory, the time, and to wait for a word, and how."""
    return {
        str(path.relative_to(folder)): lines
        for path in folder.rglob("*.[ch]")
        if (lines := [line.strip() for line in path.read_text().splitlines() if KERNEL.search(line)])
    }


def test_base_alone_asks_the_kernel() -> None:
    asked = asking(SRC)
    assert "base/kernel.h" in asked
    assert {path: how for path, how in asked.items() if not path.startswith("base/") and path not in IN_FRONT} == {}
    assert asking(SRC.parent / CORE) == {}


def circles(needs: dict[str, set[str]]) -> list[str]:
    """Those that need themselves round others: what is left when all that needs nothing else is taken away in turn, and
    then all that nothing else needs."""
    left = {name: set(used) for name, used in needs.items()}
    for _ in range(2):
        while ends := {name for name, used in left.items() if not used & left.keys()}:
            left = {name: used for name, used in left.items() if name not in ends}
        left = {name: {other for other, used in left.items() if name in used} for name in left}
    return sorted(left)


@pytest.mark.parametrize("kind", ["includes", "symbols"])
def test_no_file_needs_itself_round_others(kind: str, request: pytest.FixtureRequest) -> None:
    needs: dict[Path, set[Path]] = request.getfixturevalue(kind)
    named: dict[str, set[str]] = defaultdict(set)
    for path, used in needs.items():
        if floor_of(path) not in (CORE, EVENTS):
            named[name_of(path)] |= {name_of(other) for other in used if floor_of(other) not in (CORE, EVENTS)}
            named[name_of(path)].discard(name_of(path))
    assert circles(dict(named)) == []


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
