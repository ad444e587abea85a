"""Programs that close the driver's library, or NVML's, and open it again: what the hook calls is what is loaded now."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cuda_hook import wire
from simgpu.native import LIBRARIES
from tests.kit.hook.manager import PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, OUT_OF_MEMORY, SUCCESS, Stage, compile_program

LINK_NVML = (f"-L{LIBRARIES}", "-l:libnvidia-ml.so.1", f"-Wl,-rpath-link,{LIBRARIES}")


def lines(stage: Stage, *command: object, preload: bool = True) -> list[str]:
    """What a program says, with the hook or without."""
    environment = stage.environment() if preload else stage.environment(LD_PRELOAD="")
    argv = [str(word) for word in command]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr, stage.hook_log())
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def reload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that opens a plugin twice."""
    return compile_program(tmp_path_factory.mktemp("reload") / "reload", "process/reload.c")


@pytest.mark.parametrize("begins", [False, True], ids=["before it began", "after it began"])
def test_a_driver_that_is_loaded_again_is_gated_and_capped(
    begins: bool, reload: Path, tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    """The plugin is linked to it, so that nothing is looked up anew."""
    manager.serve(contended=True)
    flags = ("-DBEGINS",) if begins else ()
    plugin = compile_program(
        tmp_path / "plugin.so", "process/computing.c", "-shared", "-fPIC", "-Wl,--no-as-needed", *flags, *LINK_DRIVER
    )
    command = (reload, plugin, "libcuda.so")
    assert lines(stage, *command, preload=False) == ["too much: 0", "enough: 0", "launched: 0"]
    assert lines(stage, *command) == [f"too much: {OUT_OF_MEMORY}", "enough: 0", "launched: 0"]
    assert manager.said(wire.Request)


def test_nvml_that_is_loaded_again_shows_the_cap(
    reload: Path, tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    plugin = compile_program(
        tmp_path / "plugin.so", "process/watching.c", "-shared", "-fPIC", "-Wl,--no-as-needed", *LINK_NVML
    )
    command = (reload, plugin, "libnvidia-ml.so")
    assert lines(stage, *command, preload=False) == ["4096 MiB"] * 2
    assert lines(stage, *command) == ["1024 MiB"] * 2


CLOSES = """
import ctypes, sys
from _ctypes import dlclose

def place(path):
    lines = [line.split()[0].split("-") for line in open("/proc/self/maps") if path in line]
    return [int(lines[0][0], 16), int(lines[-1][1], 16)] if lines else None

first = ctypes.CDLL(sys.argv[1])
print(first.cuInit(0))
begin, end = place(sys.argv[1])
dlclose(first._handle)
print(place(sys.argv[1]))
# The other does not come to its place.
ctypes.CDLL(None).mmap(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), 0, 0x100022, -1, 0)
driver = ctypes.CDLL(sys.argv[2])
print(driver.cuInit(0))
"""

KEEPS = """
import ctypes, sys
driver, other = map(ctypes.CDLL, sys.argv[1:])
print(driver.cuInit(0))
other.cuCtxCreate_v2, other.cuMemAlloc_v2
"""

ALLOCATES = """
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
print(driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
for mib in (2048, 1024):
    print(driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(mib << 20)))
"""


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """The driver at two places."""
    paths = [tmp_path / place / "libcuda.so.1" for place in ("here", "there")]
    for path in paths:
        path.parent.mkdir()
        shutil.copy(LIBRARIES / "libcuda.so.1", path)
    return paths


def test_a_driver_of_another_place_is_capped_once_the_first_is_closed(
    copies: list[Path], stage: Stage, manager: ScriptedManager
) -> None:
    said = lines(stage, sys.executable, "-c", CLOSES + ALLOCATES, *copies)
    assert said == [f"{SUCCESS}", "None", f"{SUCCESS}", f"{SUCCESS}", f"{OUT_OF_MEMORY}", f"{SUCCESS}"]


def test_a_driver_that_is_open_stays_the_one_that_is_called(
    copies: list[Path], stage: Stage, manager: ScriptedManager
) -> None:
    """Names are looked up in another copy of it meanwhile."""
    said = lines(stage, sys.executable, "-c", KEEPS + ALLOCATES, *copies)
    assert said == [f"{SUCCESS}", f"{SUCCESS}", f"{OUT_OF_MEMORY}", f"{SUCCESS}"]
