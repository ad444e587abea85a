"""NVIDIA's runtime library, of many CUDA versions, finds the hook's wrappers wherever it looks for the driver; and what
goes past the hook is said once."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from simgpu.create import create
from simgpu.environment import variables
from tests.kit.hook.releases import DRIVERS, RELEASES, NotHereError, driver, exported_names, release
from tests.kit.hook.stage import HOOK, ROOT, compile_program


def run(program: Path, runtime: Path, environment: dict[str, str]) -> tuple[list[str], set[tuple[str, str]]]:
    """What the runtime answered, and which functions it then holds, as (object, symbol)."""
    done = subprocess.run([program, runtime], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    answers = [" ".join(words) for words in lines if words[0] != "holds"]
    # It is linked to dlsym and dlvsym, which are the hook's, too.
    return answers, {(words[1], words[2]) for words in lines if words[0] == "holds" and words[2].startswith("cu")}


@pytest.mark.parametrize("driver_version", [*DRIVERS, "simulated"])
def test_runtimes_hold_wrappers_and_are_answered_as_without_the_hook(driver_version: str, tmp_path: Path) -> None:
    """Up to what there is: no device under a real driver, its private tables under the simulated one."""
    try:
        runtimes = {version: next(release(version).glob("libcudart.so.*")) for version in RELEASES}
        if driver_version == "simulated":
            create(tmp_path / "machine", gpus=1)
            environment = variables(tmp_path / "machine", {})
        else:
            environment = {"LD_LIBRARY_PATH": str(driver(driver_version).parent)}
    except NotHereError as error:
        pytest.skip(str(error))
    program = compile_program(tmp_path / "runtime", "names/runtime.c")
    wrapped = exported_names(HOOK)
    for version, runtime in runtimes.items():
        bare, held = run(program, runtime, environment)
        hooked, held_with_hook = run(program, runtime, {**environment, "LD_PRELOAD": str(HOOK)})
        assert hooked == bare, version
        assert {place for place, _ in held} == {"driver"}, version
        # The same functions in the same versions, each by its wrapper if it has one.
        assert held_with_hook == {("hook" if name in wrapped else "driver", name) for _, name in held}, version
        assert len([name for place, name in held_with_hook if place == "hook"]) > 60, version


ASK = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
for table in sys.argv[2:]:
    found = ctypes.c_void_p()
    print(driver.cuGetExportTable(ctypes.byref(found), bytes.fromhex(table)), bool(found))
"""


def known_tables() -> list[str]:
    """The ids, as hexadecimal digits, of the driver's private tables that the hook takes for the runtimes' own."""
    source = (ROOT / "cuda_hook/src/entry/substitutes.c").read_text()
    rows = re.findall(r"^    \{((?:0x[0-9a-f]{2}(?:, )?){16})\},$", source, re.MULTILINE)
    return [row.replace("0x", "").replace(", ", "") for row in rows]


def test_the_tables_that_are_known_are_those_of_runtimes() -> None:
    assert len(known_tables()) == 7
    try:
        held = [next(release(version).glob("libcudart.so.*")).read_bytes() for version in RELEASES]
    except NotHereError as error:
        pytest.skip(str(error))
    for table in known_tables():
        assert any(bytes.fromhex(table) in content for content in held), table


@pytest.mark.parametrize("driver_version", DRIVERS)
def test_a_private_table_of_the_driver_is_passed_on_and_an_unknown_one_said_once(
    driver_version: str, tmp_path: Path
) -> None:
    try:
        library = driver(driver_version)
    except NotHereError as error:
        pytest.skip(str(error))
    other = "0ca50b8c1004929a89a7d0df10e77286"  # seen in both drivers, and in no runtime
    command = [sys.executable, "-c", ASK, library, known_tables()[0], other, other, "00" * 16]
    log = tmp_path / "log"
    answers = []
    for extra in ({}, {"LD_PRELOAD": str(HOOK), "EDGESHARE_HOOK_LOG": str(log)}):
        answers.append(subprocess.run(command, env=extra, capture_output=True, text=True, check=True).stdout)
    assert answers[0] == answers[1] == "0 True\n0 True\n0 True\n1 False\n"
    said = [line.partition(": ")[2] for line in log.read_text().splitlines() if "table" in line]
    assert said == [f"the program has the driver's table {other}: what it calls in there is not seen"]


def test_what_a_newer_driver_has_is_left_alone_and_said_once(tmp_path: Path) -> None:
    (tmp_path / "newer").mkdir()
    library = compile_program(tmp_path / "newer" / "libcuda.so.1", "libraries/newer.c", "-shared", "-fPIC")
    script = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
for name in ["cuMemcpyTwiceAsync", "cuLaunchKernel", "cuMemcpyTwiceAsync", "cuLaunchKernel", "cuStreamWaitValue32"]:
    found, status = ctypes.c_void_p(), ctypes.c_int()
    assert driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), 13050, 0, ctypes.byref(status)) == 0
    own = "cuMemcpyTwiceAsync" if name[2] == "M" else "cuLaunchKernel_v9"
    assert found.value == ctypes.cast(getattr(driver, own), ctypes.c_void_p).value
"""
    log = tmp_path / "log"
    preload = {"LD_PRELOAD": str(HOOK), "EDGESHARE_HOOK_LOG": str(log)}
    subprocess.run([sys.executable, "-c", script, library], env=preload, check=True)
    said = [line.partition(": ")[2] for line in log.read_text().splitlines() if "cuGetProcAddress" in line]
    assert said == [
        "cuGetProcAddress gave cuMemcpyTwiceAsync, which is not known here; it is left alone",
        "cuGetProcAddress gave a version of cuLaunchKernel that is not known here; it is left alone",
    ]


@pytest.mark.parametrize("door", ["handle", "default"])
def test_a_driver_finds_its_own_functions(door: str, tmp_path: Path) -> None:
    """Whatever the hook has put in front of them: the driver's calls of itself are not the program's."""
    compile_program(tmp_path / "libcuda.so.1", "libraries/newer.c", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    script = """
import ctypes, sys
driver = ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
driver.newer_finds.restype = ctypes.c_char_p
print(driver.newer_finds(sys.argv[1].encode()).decode())
"""
    environment = {"LD_PRELOAD": str(HOOK), "LD_LIBRARY_PATH": str(tmp_path)}
    command = [sys.executable, "-c", script, door]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "own\n"
