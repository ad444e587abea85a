"""What was built of a tree is taken by the next tree of the same sources, and by no other."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def built() -> ModuleType:
    spec = importlib.util.spec_from_file_location("built", ROOT / "tools/built.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path, code: str = "int a;") -> Path:
    """One that has nothing built."""
    (folder / "simgpu/driver").mkdir(parents=True)
    (folder / "simgpu/driver/a.c").write_text(code)
    (folder / "setup.py").write_text("")
    return folder


def build(folder: Path, text: str = "library") -> None:
    """As a compiler and a linker do."""
    library = folder / "simgpu/lib/liba.so.1"
    library.parent.mkdir(exist_ok=True)
    library.write_text(text)
    library.chmod(0o755)
    library.with_name("liba.so").symlink_to(library.name)


def make(built: ModuleType, folder: Path, cache: Path) -> bool:
    """As `make build` does; whether there was something to build."""
    built.main(["take", str(folder), str(cache)])
    missing = not (folder / "simgpu/lib/liba.so.1").exists()
    if missing:
        build(folder)
    built.main(["keep", str(folder), str(cache)])
    return missing


def test_a_second_tree_of_the_same_sources_takes_what_the_first_one_built(built: ModuleType, tmp_path: Path) -> None:
    assert make(built, tree(tmp_path / "one"), tmp_path / "cache")
    second = tree(tmp_path / "two")
    assert not make(built, second, tmp_path / "cache")
    library = second / "simgpu/lib/liba.so"
    assert library.is_symlink()
    assert library.read_text() == "library"
    assert os.access(library, os.X_OK)
    assert library.stat().st_mtime_ns >= (second / "simgpu/driver/a.c").stat().st_mtime_ns


@pytest.mark.parametrize("changed", ["simgpu/driver/a.c", "setup.py", "sharemgr/new.py"])
def test_other_sources_are_built_anew(built: ModuleType, tmp_path: Path, changed: str) -> None:
    make(built, tree(tmp_path / "one"), tmp_path / "cache")
    second = tree(tmp_path / "two")
    (second / changed).parent.mkdir(exist_ok=True)
    (second / changed).write_text("changed")
    assert make(built, second, tmp_path / "cache")


def test_what_another_compiler_made_is_not_taken(
    built: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(built, tree(tmp_path / "one"), tmp_path / "cache")
    monkeypatch.setenv("CFLAGS", "-O0")
    assert make(built, tree(tmp_path / "two"), tmp_path / "cache")


def test_nothing_is_kept_of_a_tree_in_which_something_was_built_before(built: ModuleType, tmp_path: Path) -> None:
    first = tree(tmp_path / "one")
    build(first, "of other sources")
    made = first / "simgpu/lib/liba.so.1"
    os.utime(made, ns=(made.stat().st_atime_ns, made.stat().st_mtime_ns - 1_000_000_000))
    assert not make(built, first, tmp_path / "cache")
    assert make(built, tree(tmp_path / "two"), tmp_path / "cache")


def test_what_was_used_least_lately_goes(built: ModuleType, tmp_path: Path) -> None:
    for number in range(built.KEPT):
        make(built, tree(tmp_path / f"tree-{number}", f"int a{number};"), tmp_path / "cache")
    for age_s, archive in enumerate(sorted((tmp_path / "cache").iterdir(), key=lambda path: path.stat().st_mtime_ns)):
        os.utime(archive, ns=(0, (age_s + 1) * 1_000_000_000))
    # The first one is used again, and so the second is the oldest.
    assert not make(built, tree(tmp_path / "again", "int a0;"), tmp_path / "cache")
    assert make(built, tree(tmp_path / "more", "int more;"), tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == built.KEPT
    assert not make(built, tree(tmp_path / "first", "int a0;"), tmp_path / "cache")
    assert make(built, tree(tmp_path / "second", "int a1;"), tmp_path / "cache")


def test_what_was_built_while_a_source_was_changed_is_not_kept(built: ModuleType, tmp_path: Path) -> None:
    folder, cache = tree(tmp_path / "one"), tmp_path / "cache"
    built.main(["take", str(folder), str(cache)])
    begun_ns = (folder / built.BEGUN).stat().st_mtime_ns
    build(folder)
    source = folder / "simgpu/driver/a.c"
    source.write_text("int b;")
    os.utime(source, ns=(begun_ns + 1, begun_ns + 1))
    built.main(["keep", str(folder), str(cache)])
    assert make(built, tree(tmp_path / "two", "int b;"), cache)
