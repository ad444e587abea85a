"""NVIDIA's runtime library, of many CUDA versions, finds the hook's wrappers wherever it looks for the driver."""

import subprocess
from pathlib import Path

import pytest
from nvidia import DRIVERS, RELEASES, NotHereError, driver, exported_names, release
from programs import HOOK, compile_program

from simgpu.create import create
from simgpu.environment import variables


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
    program = compile_program(tmp_path / "runtime", "runtime.c")
    wrapped = exported_names(HOOK)
    for version, runtime in runtimes.items():
        bare, held = run(program, runtime, environment)
        hooked, held_with_hook = run(program, runtime, {**environment, "LD_PRELOAD": str(HOOK)})
        assert hooked == bare, version
        assert {place for place, _ in held} == {"driver"}, version
        # The same functions in the same versions, each by its wrapper if it has one.
        assert held_with_hook == {("hook" if name in wrapped else "driver", name) for _, name in held}, version
        assert len([name for place, name in held_with_hook if place == "hook"]) > 60, version
