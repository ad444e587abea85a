"""A stage for client programs: machine, hook and driver; the manager is each test's own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simgpu.paces import Pace
from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, Stage, compile_program
from tests.kit.manager.testbed import Testbed, in_own_folder


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled client, linked to the driver and not."""
    folder = tmp_path_factory.mktemp("programs")
    compile_program(folder / "linked", "client", "-DLINKED", *LINK_DRIVER)
    compile_program(folder / "opened", "client")
    return folder


@pytest.fixture
def pace() -> Pace | None:
    """Of the stage's machine; a test may set another one."""
    return None


@pytest.fixture
def stage(programs: Path, pace: Pace | None) -> Iterator[Stage]:
    folder = Path(tempfile.mkdtemp(prefix="hook-", dir="/dev/shm"))
    stage = Stage(folder, programs, pace=pace)
    yield stage
    stage.end()
    shutil.rmtree(folder)


@pytest.fixture
def manager(stage: Stage) -> Iterator[ScriptedManager]:
    with ScriptedManager(stage.directory) as manager:
        yield manager


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs, for a real manager."""
    with in_own_folder(Testbed, "es-hook-") as testbed:
        yield testbed
