"""Where the hook finds its allocation: what a container has mounted goes before what its environment says."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuda_hook import wire
from edgeshare.contract.names import ALLOCATIONS_SOCKET, CLIENTS_DIR, HOOK_DIR_IN_CONTAINER, HOOK_DIR_VARIABLE
from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import SUCCESS, Client, Stage

MOUNTED = f"""set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir {HOOK_DIR_IN_CONTAINER}
mount --bind "$1" {HOOK_DIR_IN_CONTAINER}
shift
exec env "$@"
"""
"""Runs a program where a folder is mounted as the one of a container's allocation."""


@pytest.fixture(scope="module", autouse=True)
def mounts() -> None:
    """Skips where this user cannot mount."""
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", "/tmp", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"cannot mount here: {tried.stderr.strip()}")


@contextmanager
def client(stage: Stage, programs: Path, mounted: Path, named: Path) -> Iterator[Client]:
    """A client where one folder is mounted and the variable names another. The hook is loaded into it alone, not into
    what mounts."""
    environment = stage.environment()
    hook = f"LD_PRELOAD={environment.pop('LD_PRELOAD')}"
    container = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(mounted)]
    program = [hook, f"{HOOK_DIR_VARIABLE}={named}", str(programs / "opened"), "dlsym"]
    started = Client([*container, *program], environment)
    try:
        yield started.ready().start()
    finally:
        started.kill()


@pytest.mark.parametrize("there", [True, False], ids=["a-folder-of-its-own", "nowhere"])
def test_a_variable_takes_no_program_out_of_the_share_of_its_container(
    there: bool, stage: Stage, programs: Path, manager: ScriptedManager, tmp_path: Path
) -> None:
    named = tmp_path if there else tmp_path / "nowhere"
    with client(stage, programs, stage.directory, named) as inside:
        stage.holds_until_granted(manager, inside, "launch 1000 3")
        assert inside.end() == (0, "")
    assert f"joined {HOOK_DIR_IN_CONTAINER}" in stage.hook_log()


def test_a_managers_own_folder_of_that_name_is_no_allocation(
    stage: Stage, programs: Path, manager: ScriptedManager, tmp_path: Path
) -> None:
    """As on a host, where the manager has its sockets there."""
    (tmp_path / CLIENTS_DIR).mkdir()
    (tmp_path / ALLOCATIONS_SOCKET).touch()
    manager.serve(contended=False)
    with client(stage, programs, tmp_path, stage.directory) as outside:
        assert [outside.do("launch 1000 3"), outside.do("sync")] == [SUCCESS, SUCCESS]
        assert outside.end() == (0, "")
    assert manager.said(wire.Request)
    assert f"joined {stage.directory}" in stage.hook_log()
