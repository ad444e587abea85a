"""What is compiled for tests is compiled again where what a compiler reads is another, and nowhere else."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.programs import compiled as kept
from tests.kit.programs.compiled import _state_of, compiled, key_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """With a program of the tests', and what it includes."""
    tree = tmp_path / "tree"
    for name in ("cuda_hook/wire.h", "simgpu/driver/execution/launch.c", "tests/hook/program.c", "tests/sim/device.c"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text("int a;\n")
    return tree


def commands(tree: Path, *flags: str) -> Sequence[Sequence[str]]:
    return [["gcc", *flags, f"-I{tree}/cuda_hook", "-o", "program", str(tree / "tests/hook/program.c")]]


def key(tree: Path, *flags: str) -> str:
    _state_of.cache_clear()
    return key_of("program", commands(tree, *flags), tree)


@pytest.mark.parametrize(
    "read", ["cuda_hook/wire.h", "tests/hook/program.c", "tests/hook/new.h", "cuda_hook/a/new.def"]
)
def test_what_a_compiler_reads_counts(tree: Path, read: str) -> None:
    before = key(tree)
    (tree / read).parent.mkdir(exist_ok=True)
    (tree / read).write_text("int b;\n")
    assert key(tree) != before


def test_how_it_is_called_counts(tree: Path) -> None:
    assert len({key(tree), key(tree, "-O2"), key(tree, f"-I{tree}/simgpu"), key(tree, f"-L{tree}/simgpu")}) == 4


def test_what_it_does_not_read_does_not_count(tree: Path) -> None:
    before = key(tree)
    for other in ("simgpu/driver/execution/launch.c", "tests/sim/device.c"):
        (tree / other).write_text("int b;\n")
    assert key(tree) == before


def test_another_place_does_not_count(tree: Path) -> None:
    shutil.copytree(tree, tree.parent / "copy")
    assert key(tree.parent / "copy") == key(tree)


def test_what_is_kept_names_no_place(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    source = root / "tests/simgpu/c/property.c"
    built = compiled("object", ["gcc", "-g", f"-I{root}/simgpu", "-c", str(source), "-o", "object"])
    assert str(root).encode() not in built.read_bytes()


def test_what_a_source_does_not_include_has_it_compiled_no_more(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two programs with what lies in one folder only that is compiled again which includes what was changed."""
    monkeypatch.setattr(kept, "ROOT", tree)
    monkeypatch.setattr(kept, "KEPT", tree.parent / "kept")
    programs = {name: tree / f"tests/{name}/program.c" for name in ("with", "without")}
    for name, source in programs.items():
        source.parent.mkdir()
        source.write_text(f"{'#include <wire.h>' if name == 'with' else ''}\nint c;\n")

    def made() -> list[int]:
        _state_of.cache_clear()
        objects = (
            compiled("object", ["gcc", "-g", f"-I{tree}/cuda_hook", "-c", str(each), "-o", "object"])
            for each in programs.values()
        )
        return [each.stat().st_ino for each in objects]

    before = made()
    assert made() == before
    (tree / "cuda_hook/wire.h").write_text("int d;\n")
    after = made()
    assert after[0] != before[0]
    assert after[1] == before[1]
