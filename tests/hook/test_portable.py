"""The hook as it is built for old C libraries and the other processor, and a program of that processor behind it."""

from pathlib import Path

import pytest
from manager import PATIENCE_S
from portable import Emulator, portable
from programs import ROOT
from testbed import Testbed

HOOK = Path("cuda_hook/libedgeshare_cuda.so")


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


@pytest.fixture
def burn(emulator: Emulator) -> list[str]:
    """The aarch64 program, as a command to which arguments can be added; under the hook of its own processor."""
    there = portable("aarch64", simgpu=True)
    variables = {"LD_PRELOAD": str(there / HOOK), "LD_LIBRARY_PATH": str(there / "simgpu/lib")}
    env = [f"{name}={value}" for name, value in emulator.environment(**variables).items()]
    # The loader's own variables would have the emulator itself preload a library of this processor's.
    return ["env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH", *env, *emulator.command(there / "simgpu/bin/burn")]


def test_a_program_of_the_other_processor_gets_slices_and_the_cap(burn: list[str], testbed: Testbed) -> None:
    """The manager and the neighbour are of this machine's processor."""
    testbed.manager()
    neighbour = testbed.popen(
        *testbed.run_arguments("--percent", "50", "--gpu", "0", "--"),
        *(str(ROOT / "simgpu/bin/burn"), "--seconds", str(PATIENCE_S)),
    )
    testbed.until(lambda status: any(one.clients for one in status.allocations))
    command = ("--percent", "50", "--gpu", "0", "--memory-mib", "512", "--", *burn)
    ran = testbed.edgeshare(*testbed.run_arguments(*command, "--seconds", "2", "--alloc-mib", "100"), SIMGPU_TAG="arm")
    assert (ran.returncode, ran.stderr) == (0, "")
    executed = {process.tag: sum(process.executed_ns) for process in testbed.machine.processes()}
    # Two saturating programs with half each, and an emulator in between: far from the whole, and from nothing.
    assert 0.25e9 < executed["arm"] < 1.75e9
    over = testbed.edgeshare(*testbed.run_arguments(*command, "--seconds", "1", "--alloc-mib", "600"))
    assert over.returncode != 0
    assert "OUT_OF_MEMORY" in over.stderr
    neighbour.kill()
