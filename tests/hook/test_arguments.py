"""What a driver answers to arguments that are nothing, with a context and without, is what it answers with the hook."""

import subprocess
from pathlib import Path

import pytest
from manager import PATIENCE_S, ScriptedManager
from nvidia import DRIVERS, NotHereError, driver, exported_names
from programs import HOOK, Stage, compile_program

from simgpu.native import LIBRARIES


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
    program = compile_program(tmp_path / "zeros", "zeros.c")
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
