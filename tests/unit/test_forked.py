"""What is forked from a nursery is as if it had been started: arguments, environment, folder, streams, parent, end."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from simgpu.create import create
from simgpu.environment import variables as simulated
from tests.kit.processes import forked

END_S = 60
PR_GET_CHILD_SUBREAPER = 37  # linux/prctl.h


@contextmanager
def manager(number: int = 0, **variables: str) -> Iterator[forked.Forked]:
    """A share manager of this folder's simulated machine, which serves."""
    folders = [f"--runtime-dir=run-{number}", f"--state-dir=state-{number}"]
    environment = {**os.environ, **simulated(Path.cwd() / "machine"), **variables}
    process = forked.start(["sharemgr", "node", *folders], environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("edgeshare sharemgr node: ready")
        yield process
    finally:
        process.kill()
        process.communicate(END_S)


def streams(process: forked.Forked) -> set[str]:
    """The files, pipes and sockets that a process has."""
    found = set()
    for each in Path(f"/proc/{process.pid}/fd").iterdir():
        # It may just be closing one.
        with suppress(FileNotFoundError):
            found.add(str(each.readlink()))
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    create(tmp_path / "machine", gpus=1, memory_mib=1024)
    return tmp_path


def test_it_is_told_what_to_do_and_says_how_it_ended() -> None:
    refused = forked.run(["sharemgr", "node", "--nothing-like-it"], END_S)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--nothing-like-it" in refused.stderr
    done = forked.run(["--version"], END_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("edgeshare, version ")


@pytest.mark.parametrize(("loaded", "is_there"), [(forked.NODE, False), (forked.CLUSTER, True)])
def test_it_is_forked_from_what_has_loaded_what_was_asked_for(
    folder: Path, loaded: tuple[str, ...], is_there: bool
) -> None:
    program = folder / "program.py"
    program.write_text('import sys\nprint("sharemgr.cluster.service" in sys.modules)\n')
    assert forked.run([], END_S, program=[str(program)], loaded=loaded).stdout == f"{is_there}\n"


def test_it_is_a_child_in_the_folder_of_who_started_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with manager() as process:
        assert Path(f"/proc/{process.pid}/cwd").readlink() == folder
    other = folder / "other"
    other.mkdir()
    (other / "machine").symlink_to(folder / "machine")
    monkeypatch.chdir(other)
    with manager() as process:
        assert f"PPid:\t{os.getpid()}\n" in Path(f"/proc/{process.pid}/status").read_text()
        assert Path(f"/proc/{process.pid}/cwd").readlink() == other
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.terminate()
        assert process.wait(END_S) == 0
    with manager() as process:
        process.kill()
        assert process.wait(END_S) == -signal.SIGKILL


def test_it_has_its_own_streams_and_nobody_elses() -> None:
    with manager(1) as first, manager(2) as second:
        assert first.stdout is not None
        assert second.stdout is not None
        pipes = [
            str(Path(f"/proc/self/fd/{each.stdout.fileno()}").readlink()) for each in (first, second) if each.stdout
        ]
        assert [pipe in streams(first) for pipe in pipes] == [True, False]
        assert [pipe in streams(second) for pipe in pipes] == [False, True]
        assert Path(f"/proc/{second.pid}/fd/0").readlink() == Path(os.devnull)


def test_what_is_read_at_the_start_is_there_then_and_nothing_stays_from_one_to_the_next() -> None:
    with manager(MALLOC_ARENA_MAX="3") as process:
        assert b"\0MALLOC_ARENA_MAX=3\0" in b"\0" + Path(f"/proc/{process.pid}/environ").read_bytes()
    completes = {**os.environ, "_EDGESHARE_COMPLETE": "bash_source"}
    assert "complete" in forked.run([], END_S, completes).stdout
    assert forked.run(["--help"], END_S).stdout.startswith("Usage: edgeshare")


def test_orphans_are_adopted_for_no_longer_than_a_start() -> None:
    forked.run(["--version"], END_S)
    adopting = ctypes.c_int()
    assert ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(adopting), 0, 0, 0) == 0
    assert adopting.value == 0
