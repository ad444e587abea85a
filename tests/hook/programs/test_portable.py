"""The hook as it is built for old C libraries and the other processor, and a program of that processor behind it."""

import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import PATIENCE_S, WELCOME, ScriptedManager
from tests.kit.hook.portable import Emulator, portable
from tests.kit.hook.stage import ROOT, SUCCESS, Stage
from tests.kit.manager.testbed import Testbed

HOOK = Path("cuda_hook/libedgeshare_cuda.so")
MANAGERS = 4


@pytest.fixture(scope="module")
def emulator() -> Emulator:
    return Emulator()


@pytest.fixture
def burn(emulator: Emulator) -> list[str]:
    """The aarch64 program, as a command to which arguments can be added; under the hook of its own processor."""
    simulated = portable("aarch64", "simgpu")
    variables = {"LD_PRELOAD": str(portable("aarch64") / HOOK), "LD_LIBRARY_PATH": str(simulated / "lib")}
    env = [f"{name}={value}" for name, value in emulator.environment(**variables).items()]
    # The loader's own variables would have the emulator itself preload a library of this processor's.
    return ["env", "-u", "LD_PRELOAD", "-u", "LD_LIBRARY_PATH", *env, *emulator.command(simulated / "bin/burn")]


def test_a_program_of_the_other_processor_gets_slices_and_the_cap(burn: list[str], testbed: Testbed) -> None:
    """The manager and the neighbour are of this machine's processor."""
    testbed.manager()
    neighbour = testbed.fork(
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


@pytest.fixture
def released(programs: Path) -> Iterator[Stage]:
    """A stage with the hook that is released for this processor, which another compiler builds than the tests' own."""
    folder = Path(tempfile.mkdtemp(prefix="hook-", dir="/dev/shm"))
    stage = Stage(folder, programs, portable(platform.machine()) / HOOK)
    yield stage
    stage.end()
    shutil.rmtree(folder)


def test_pages_of_one_manager_after_another_are_mapped_from_their_beginning(released: Stage) -> None:
    released.directory.mkdir()
    client = released.client().ready().start()
    for epoch in range(1, MANAGERS + 1):
        with ScriptedManager(released.directory, replace(WELCOME, epoch=epoch)) as manager:
            client.tell("launch 100")
            # Before it asks, it would take the grant for one of no work.
            manager.hears(wire.Request)
            manager.grant()
            assert client.answer() == [SUCCESS]
            mapped = Path(f"/proc/{client.process.pid}/maps").read_text().splitlines()
            offsets = {line.split()[5]: line.split()[2] for line in mapped if "memfd:edgeshare" in line}
            assert set(offsets) == {"/memfd:edgeshare-gate", "/memfd:edgeshare-hint"}
            assert {int(offset, 16) for offset in offsets.values()} == {0}
            manager.revoke()
            manager.hears(wire.Release)
