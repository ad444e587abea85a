"""What wheels are made of is what the tree has: no list names it by hand, and nothing is left behind."""

import os
import tomllib
import zipfile
from distutils.core import run_setup
from pathlib import Path
from typing import Any

import pytest
from setuptools import Distribution

from edgeshare import __version__
from edgeshare.shown.page_files import FILES, FOLDER, LOGIN, LOGIN_FILES

ROOT = Path(__file__).parent.parent.parent
NOT_PACKAGED = {"bench", "tests"}
"""Packages at the top of the tree that are in no wheel."""
SIMULATED = "simgpu"
"""The one that has a wheel of its own."""
INSTALLS = "ignore:setup.py install is deprecated"
"""Said by what builds a wheel; pip, too, passes over it."""


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def distribution(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """The project as setuptools reads it, when nothing has been built."""
    monkeypatch.chdir(ROOT)
    return run_setup("setup.py", stop_after="config")


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """The same of the simulated machine's."""
    monkeypatch.chdir(ROOT / SIMULATED)
    return run_setup("setup.py", stop_after="config")


def packages_of_the_tree() -> set[str]:
    """Every folder of the product that Python imports, by its dotted name."""
    tops = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in NOT_PACKAGED]
    folders = [init.parent for top in tops for init in top.rglob("__init__.py")]
    return {".".join(folder.relative_to(ROOT).parts) for folder in folders}


def packed(distribution: Distribution) -> set[Path]:
    """The modules of a wheel, from where it is built."""
    build_py = distribution.get_command_obj("build_py")
    build_py.ensure_finalized()
    return {Path(file) for _, _, file in build_py.find_all_modules()}


def test_every_module_of_the_tree_is_in_the_wheel(distribution: Distribution) -> None:
    tops = {ROOT / package for package in packages_of_the_tree() if "." not in package} - {ROOT / SIMULATED}
    assert tops
    assert packed(distribution) == {path.relative_to(ROOT) for top in tops for path in top.rglob("*.py")}


def test_every_module_of_the_simulated_machine_is_in_its_own(simulated: Distribution) -> None:
    folder = ROOT / SIMULATED
    assert packed(simulated) == {path.relative_to(folder) for path in folder.rglob("*.py")} - {Path("setup.py")}


def test_simulated_machine_is_of_the_version_that_it_is_for(simulated: Distribution) -> None:
    assert simulated.get_version() == __version__
    assert simulated.install_requires == [f"edgeshare=={__version__}"]
    assert simulated.has_ext_modules()


def wheel(distribution: Distribution, folder: Path) -> set[str]:
    """The files of a wheel that is built, but not compiled: what its command names as made is put there empty. (What
    mypyc makes it names only once that was run; of each there is the module, too.)"""

    # Which class is built upon setuptools knows at run time alone.
    class Uncompiled(distribution.get_command_class("build_ext")):  # type: ignore[misc]
        def run(self) -> None:
            for made in map(Path, self.get_outputs()):
                made.parent.mkdir(parents=True, exist_ok=True)
                made.touch()

    distribution.cmdclass["build_ext"] = Uncompiled
    for command, option in (("build", "build_base"), ("egg_info", "egg_base"), ("bdist_wheel", "dist_dir")):
        (folder / command).mkdir()
        distribution.get_option_dict(command)[option] = ("the test", str(folder / command))
    distribution.run_command("bdist_wheel")
    (made,) = (folder / "bdist_wheel").glob("*.whl")
    with zipfile.ZipFile(made) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


HEADERS = {"cuda_hook/wire.h", "cuda_hook/edgeshare_slice.h"}
"""What other programs include, and what the records of the wire are read from."""

SIMULATED_HEADERS = {"simgpu/machine/plan.h", "simgpu/machine/layout.h", "simgpu/observer/observer.h"}


@pytest.mark.filterwarnings(INSTALLS)
def test_a_built_wheel_has_the_files_of_the_tree_what_is_compiled_and_no_others(
    distribution: Distribution, tmp_path: Path
) -> None:
    tops = {ROOT / package for package in packages_of_the_tree() if "." not in package} - {ROOT / SIMULATED}
    modules = {str(path.relative_to(ROOT)) for top in tops for kind in ("*.py", "*.pyi") for path in top.rglob(kind)}
    page = {str(path.relative_to(ROOT)) for path in (ROOT / "edgeshare/shown" / FOLDER).iterdir()}
    (hook,) = distribution.get_command_class("build_portable").made
    compiled = {hook.path, "cuda_hook/_core.abi3.so"}
    assert wheel(distribution, tmp_path) == modules | page | HEADERS | compiled


@pytest.mark.filterwarnings(INSTALLS)
def test_a_built_wheel_of_the_simulated_machine_has_its_files_what_is_compiled_and_no_others(
    simulated: Distribution, tmp_path: Path
) -> None:
    folder = ROOT / SIMULATED
    modules = {str(path.relative_to(ROOT)) for path in folder.rglob("*.py")} - {f"{SIMULATED}/setup.py"}
    compiled = {f"{SIMULATED}/{plain.path}" for plain in simulated.get_command_class("build_portable").made}
    assert wheel(simulated, tmp_path) == modules | SIMULATED_HEADERS | compiled


def test_what_the_page_is_made_of_is_in_the_wheel(distribution: Distribution) -> None:
    folder = ROOT / "edgeshare/shown"
    patterns = distribution.package_data["edgeshare.shown"]
    files = {path.name for pattern in patterns for path in folder.glob(pattern)}
    assert files == {path.name for path in (folder / FOLDER).iterdir()}
    assert files == {*FILES.values(), *LOGIN_FILES.values(), LOGIN}


def compiled(distribution: Distribution) -> set[Path]:
    """The files of which libraries and programs are made, from where that is done."""
    return {Path(source) for plain in distribution.get_command_class("build_portable").made for source in plain.sources}


def test_every_c_file_of_the_hook_is_compiled(distribution: Distribution) -> None:
    kept = {path.relative_to(ROOT) for kind in ("*.c", "*.S") for path in (ROOT / "cuda_hook").rglob(kind)}
    assert compiled(distribution) == kept - {Path("cuda_hook/_core.c")}


def test_every_c_file_of_the_simulated_machine_is_compiled(simulated: Distribution) -> None:
    folder = ROOT / SIMULATED
    assert compiled(simulated) == {path.relative_to(folder) for path in folder.rglob("*.c")}


def test_what_is_compiled_in_place_is_compiled_again_where_something_that_it_is_made_of_is_newer_or_a_module_is_missing(
    distribution: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # cffi's command is made of it.
    (native,) = (each for each in distribution.get_command_class("build_ext").__mro__ if each.__name__ == "BuildNative")
    set_up = native.run.__globals__
    monkeypatch.setitem(set_up, "ROOT", tmp_path)
    made_of = [tmp_path / path for path in (*set_up["COMPILED"], "setup.py", "requirements.txt")]
    modules = [tmp_path / path.replace(".py", set_up["EXT_SUFFIX"]) for path in set_up["COMPILED"]]
    group = tmp_path / f"sharemgr_node__mypyc{set_up['EXT_SUFFIX']}"
    for path, changed_s in [*((path, 1) for path in made_of), *((path, 2) for path in (*modules, group))]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (changed_s, changed_s))
    assert set_up["is_compiled"]()
    for path in made_of:
        os.utime(path, (3, 3))
        assert not set_up["is_compiled"](), path
        os.utime(path, (1, 1))
    assert set_up["is_compiled"]()
    for path in (*modules, group):
        path.rename(tmp_path / "away")
        assert not set_up["is_compiled"](), path
        (tmp_path / "away").rename(path)


def test_types_and_imports_are_checked_in_every_package(project: dict[str, Any]) -> None:
    tops = {package for package in packages_of_the_tree() if "." not in package}
    assert set(project["tool"]["mypy"]["packages"]) == {*tops, "tests.kit", "bench"}
    assert set(project["tool"]["importlinter"]["root_packages"]) == tops


def test_a_build_in_place_is_one_still_when_its_command_begins_anew_with_what_mypyc_adds(
    distribution: Distribution,
) -> None:
    distribution.get_option_dict("build_ext")["inplace"] = ("command line", 1)
    command = distribution.get_command_obj("build_ext")
    command.ensure_finalized()
    command.reinitialize_command(command, editable_mode=False)
    command.ensure_finalized()
    assert command.inplace
