"""NVIDIA's library where the driver lies in a folder of its own: loaded from there, and nothing else of that folder."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgeshare.inventory.nvml.library import DRIVER_ROOT, FOLDERS, LIBRARY
from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.native import LIBRARIES

LOOK = """
import json, sys
from pathlib import Path
from edgeshare.inventory.config import InventoryConfig
from edgeshare.inventory.sources import Inventories, sources_of
machine = Inventories(sources_of(InventoryConfig(root=Path(sys.argv[1]))))
devices = [device.id for device in machine.devices()]
print(json.dumps({"devices": devices, "said": [*machine.troubles, *machine.absent]}))
machine.close()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the driver lies."""
    return tmp_path / "driver"


def add_library(root: Path, folder: str) -> Path:
    """The simulated driver's; beside it, as in a driver's container, a C library that no program here can use."""
    target = root / folder
    target.mkdir(parents=True)
    for path in LIBRARIES.glob("*.so*"):
        shutil.copy2(path, target)
    (target / "libc.so.6").write_text("of another distribution")
    return target / LIBRARY


def look(root: Path, machine: Path) -> dict[str, list[str]]:
    """Which devices a program finds whose loader knows no driver, and what it says of what it does not."""
    env = {**os.environ, **variables(machine), DRIVER_ROOT: str(root), "LD_LIBRARY_PATH": "/nonexistent"}
    line = [sys.executable, "-c", LOOK, root / "sys"]
    done = subprocess.run(line, env=env, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_gpus_are_found_by_the_library_below_it(root: Path, tmp_path: Path, folder: str) -> None:
    create(tmp_path / "machine", gpus=2)
    add_library(root, folder)
    found = look(root, tmp_path / "machine")
    destroy(tmp_path / "machine")
    assert (len(found["devices"]), found["said"]) == (2, [])


def test_one_without_a_library_is_named(root: Path, tmp_path: Path) -> None:
    found = look(root, tmp_path / "machine")
    if found["devices"] or not found["said"]:
        pytest.skip("this machine has NVIDIA's library where the loader finds it")
    assert found["devices"] == []
    assert f"neither in the library path nor below {root}, which {DRIVER_ROOT} names; " in found["said"][0]


def test_a_library_that_cannot_be_loaded_is_named_with_the_reason(root: Path, tmp_path: Path) -> None:
    library = add_library(root, "lib64")
    library.write_text("no library")
    (said,) = look(root, tmp_path / "machine")["said"]
    assert "NVIDIA's library cannot be loaded" in said
    assert str(library) in said
