"""What a wheel is made of is what the tree has: no list names it by hand, and nothing is left behind."""

import tomllib
from distutils.core import run_setup
from pathlib import Path
from typing import Any

import pytest
from setuptools import Distribution

ROOT = Path(__file__).parent.parent.parent
NOT_PACKAGED = {"bench", "tests"}
"""Packages at the top of the tree that are no part of edgeshare."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def distribution(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """The project as setuptools reads it, when nothing has been built."""
    monkeypatch.chdir(ROOT)
    return run_setup("setup.py", stop_after="config")


def packages_of_the_tree() -> set[str]:
    """Every folder of the product that Python imports, by its dotted name."""
    tops = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in NOT_PACKAGED]
    folders = [init.parent for top in tops for init in top.rglob("__init__.py")]
    return {".".join(folder.relative_to(ROOT).parts) for folder in folders}


def test_every_module_of_the_tree_is_in_the_wheel(distribution: Distribution) -> None:
    build_py = distribution.get_command_obj("build_py")
    build_py.ensure_finalized()
    packed = {Path(file) for _, _, file in build_py.find_all_modules()}
    tops = {ROOT / package for package in packages_of_the_tree() if "." not in package}
    assert tops
    assert packed == {path.relative_to(ROOT) for top in tops for path in top.rglob("*.py")}


def test_every_c_file_of_the_product_is_compiled(distribution: Distribution) -> None:
    libraries = distribution.get_command_class("build_portable").run.__globals__["PLAIN"]
    compiled = {ROOT / source for library in libraries for source in library.sources}
    kept = {path for top in ("cuda_hook", "simgpu") for kind in ("*.c", "*.S") for path in (ROOT / top).rglob(kind)}
    assert compiled == kept - {ROOT / "cuda_hook/_core.c"}


def test_types_and_imports_are_checked_in_every_package(project: dict[str, Any]) -> None:
    tops = {package for package in packages_of_the_tree() if "." not in package}
    assert set(project["tool"]["mypy"]["packages"]) == tops
    assert set(project["tool"]["importlinter"]["root_packages"]) == tops
