"""What a driver answers to arguments that are nothing, with a context and without, is what it answers with the hook."""

import subprocess
import sys
from pathlib import Path

import pytest

from simgpu.native import LIBRARIES
from tests.kit.hook.manager import PATIENCE_S, ScriptedManager
from tests.kit.hook.releases import DRIVERS, NotHereError, driver, exported_names
from tests.kit.hook.stage import HOOK, Stage, compile_program


def answers(program: Path, library: Path, begin: str, names: list[str], environment: dict[str, str]) -> dict[str, str]:
    """What each function answered to zeros; "crash" where the driver did not survive it, "absent" where it has none."""
    done = subprocess.run(
        [program, library, begin],
        input="".join(f"{name}\n" for name in names),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.misuses("*")
@pytest.mark.parametrize(
    ("version", "begin"),
    [*((version, "nothing") for version in DRIVERS), ("simulated", "nothing"), ("simulated", "context")],
)
def test_zeros_are_answered_as_without_the_hook(
    version: str, begin: str, tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    """The real drivers have no device and refuse before they look; the simulated one looks."""
    try:
        library = LIBRARIES / "libcuda.so.1" if version == "simulated" else driver(version)
    except NotHereError as error:
        pytest.skip(str(error))
    manager.serve(contended=True)
    program = compile_program(tmp_path / "zeros", "names/zeros.c")
    # Without the ends of the context that all others are called in.
    names = sorted(name for name in exported_names(HOOK) if name != "cuInit" and "PrimaryCtx" not in name)
    environment = stage.environment()
    bare = answers(program, library, begin, names, {**environment, "LD_PRELOAD": ""})
    survived = [name for name in names if bare[name] != "crash"]
    assert len(survived) > 0.95 * len(names)
    assert len([name for name in survived if bare[name] != "absent"]) > 100
    # What the driver does not survive leaves it in no known state.
    bare = answers(program, library, begin, survived, {**environment, "LD_PRELOAD": ""})
    assert answers(program, library, begin, survived, environment) == bare


def test_green_contexts_begin_and_end_as_without_the_hook(
    stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    """The hook asks the driver whose a green context is, and leaves what is current as it was."""
    compile_program(tmp_path / "libcuda.so.1", "libraries/green.c", "-shared", "-fPIC")
    script = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_void_p
green = [pointer(), pointer(), pointer()]
print([driver.cuGreenCtxCreate(ctypes.byref(each), None, 0, 0) for each in green])
print(driver.cuCtxPushCurrent_v2(green[0]), driver.green_depth())
print([driver.cuGreenCtxDestroy(each) for each in (green[1], green[0], None)])
print(driver.green_ended(), driver.green_depth())
current = pointer()
print(driver.cuCtxGetCurrent(ctypes.byref(current)), current.value == green[0].value)
"""
    environment = stage.environment(LD_LIBRARY_PATH=str(tmp_path))
    said = [
        subprocess.run(
            [sys.executable, "-c", script], env={**environment, **extra}, capture_output=True, text=True, check=True
        ).stdout
        for extra in ({"LD_PRELOAD": ""}, {})
    ]
    assert said[0] == said[1] == "[0, 0, 1]\n0 1\n[0, 0, 201]\n2 1\n0 True\n"
    manager.client()
