"""A guest in real programs: whatever they do with themselves, they run as they do without the hook."""

import errno
import fcntl
import os
import platform
import select
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_hook import wire
from simgpu.native import BURN
from tests.kit.hook.manager import PATIENCE_S, WELCOME, ScriptedManager
from tests.kit.hook.stage import HOOK, LINK_DRIVER, Stage, compile_program
from tests.kit.manager.testbed import Testbed
from tests.kit.processes.rights import only_root

THINGS = [
    "plain",
    "spawn",
    "fork_anywhen",
    pytest.param("other_user", marks=only_root),
    pytest.param("other_root", marks=only_root),
    "close_all",
    "full_table",
    "sandbox",
    "storm",
    "small_stacks",
    "at_each_step",
    "keep_errno",
    "own_malloc",
    "leaving_threads",
    "cancelled_threads",
    "work_at_exit",
]


@pytest.fixture(scope="session")
def manners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with all of these things in it."""
    return compile_program(tmp_path_factory.mktemp("manners") / "manners", "manners", *LINK_DRIVER)


def run(program: Path, thing: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [program, thing],
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def said(result: "subprocess.CompletedProcess[str]") -> tuple[int, str, str]:
    return result.returncode, result.stdout, result.stderr


@pytest.mark.misuses("*: in a forked child")
@pytest.mark.parametrize("contended", [True, False], ids=["contended", "alone"])
@pytest.mark.parametrize("thing", THINGS)
def test_the_hook_changes_nothing_of(
    thing: str, contended: bool, manners: Path, stage: Stage, manager: ScriptedManager
) -> None:
    manager.serve(contended)
    bare = run(manners, thing, stage.environment(LD_PRELOAD=""))
    assert (bare.returncode, bare.stdout.splitlines()[:1]) == (0, ["ok"]), bare
    hooked = run(manners, thing, stage.environment())
    assert said(hooked) == said(bare), stage.hook_log()[-2000:]
    # It was a client, and had to ask.
    assert manager.said(wire.Request)


class Running:
    """A thing that waits for words in between."""

    def __init__(self, *command: str | Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def says(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == line + "\n"

    def speaks(self) -> bool:
        """Whether it has said something, or does before long."""
        return bool(select.select([self.process.stdout], [], [], 0.01)[0])

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")

    def ends(self) -> None:
        """Waits for the good end."""
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert (self.process.returncode, out) == (0, "ok\n")


@pytest.mark.parametrize("contended", [True, False], ids=["contended", "alone"])
def test_what_a_thread_left_behind_is_waited_for_and_given_back(
    contended: bool, manners: Path, stage: Stage, manager: ScriptedManager
) -> None:
    with Running(manners, "left_batch", environment=stage.environment()) as running:
        manager.hears(wire.Request)
        number = manager.grant_until(running.speaks, contended)
        running.says("waiting")
        manager.revoke()
        manager.hears_release(number)
        assert len(stage.executed()) == 5
        manager.serve(contended)
        running.go_on()
        running.ends()


def test_a_thread_that_ended_within_the_driver_keeps_no_slice(
    manners: Path, stage: Stage, manager: ScriptedManager
) -> None:
    with Running(manners, "cancelled_in_driver", environment=stage.environment()) as running:
        manager.hears(wire.Request)
        number = manager.grant_until(running.speaks, contended=False)
        running.says("waiting")
        manager.revoke()
        manager.hears_release(number)
        manager.serve(contended=False)
        running.go_on()
        running.ends()


def test_signals_keep_nobody_from_seeing_that_the_manager_is_gone(manners: Path, stage: Stage) -> None:
    manager = ScriptedManager(stage.directory, replace(WELCOME, grace_ms=100))
    with Running(manners, "storm_at_gate", environment=stage.environment()) as running:
        manager.hears(wire.Request)
        manager.die()
        running.ends()


def test_an_environment_that_is_cleared_leads_nobody_astray(manners: Path, stage: Stage) -> None:
    manager = ScriptedManager(stage.directory)
    manager.serve(contended=True)
    with Running(manners, "no_environment", environment=stage.environment()) as running:
        running.says("waiting")
        manager.die()
        with ScriptedManager(stage.directory, replace(WELCOME, epoch=2)) as successor:
            successor.serve(contended=True)
            running.go_on()
            running.ends()
            assert successor.said(wire.Request)


@pytest.mark.parametrize("preloaded", [True, False], ids=["preloaded", "opened"])
def test_libraries_that_are_closed_are_not_missed(
    preloaded: bool, tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    """The driver while its work is queued; and the hook, where a program has it by dlopen."""
    closer = compile_program(tmp_path / "closer", "closer.c")
    environment = stage.environment() if preloaded else stage.environment(LD_PRELOAD="")
    with Running(closer, *([] if preloaded else [str(HOOK)]), environment=environment) as running:
        manager.hears(wire.Request)
        number = manager.grant_until(running.speaks, contended=False)
        running.says("waiting")
        manager.revoke()
        manager.hears_release(number)
        assert len(stage.executed()) == 3
        manager.serve(contended=True)
        running.go_on()
        running.ends()


@pytest.fixture(scope="module")
def interposer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that stands in front of launches and look-ups, too."""
    version = "GLIBC_2.2.5" if platform.machine() == "x86_64" else "GLIBC_2.17"
    target = tmp_path_factory.mktemp("interposer") / "interposer.so"
    return compile_program(target, "libraries/interposer.c", "-shared", "-fPIC", f'-DVERSION="{version}"')


@pytest.mark.parametrize("door", ["linked", "dlsym", "default", "next", "getproc2"])
@pytest.mark.parametrize("order", ["before", "behind", "twice"])
def test_beside_another_who_stands_in_front_of_the_driver_the_gate_holds(
    order: str, door: str, interposer: Path, tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    """All names are bound at the start here; ``twice``: there is a second hook, from another file."""
    second = Path(shutil.copy(HOOK, tmp_path / "second.so"))
    preload = {"before": [interposer, HOOK], "behind": [HOOK, interposer], "twice": [HOOK, second]}[order]
    environment = {"LD_PRELOAD": os.pathsep.join(str(path) for path in preload), "LD_BIND_NOW": "1"}
    client = stage.client(door, **environment, INTERPOSED=str(tmp_path / "interposed")).ready().start()
    stage.holds_until_granted(manager, client, "launch 1000 3")
    assert client.end() == (0, "")
    # Who stands before it is called as without the hook. By a handle, a launch is the driver's own.
    if order == "before" and door in ("linked", "default"):
        assert (tmp_path / "interposed").read_text() == "3\n"


def too_long(folder: Path) -> dict[str, str]:
    """An allocation's folder that exists and has a path which no socket can have: something to complain of."""
    path = folder / ("x" * 120)
    path.mkdir()
    (path / "hook.conf").write_text("grace-ms=0\n")
    return {"EDGESHARE_HOOK_DIR": str(path), "EDGESHARE_HOOK_LOG": ""}


def test_a_complaint_is_heard_and_ends_or_holds_up_nobody(manners: Path, stage: Stage, tmp_path: Path) -> None:
    environment = stage.environment(**too_long(tmp_path))
    heard = run(manners, "plain", environment)
    assert heard.returncode == 0
    assert "too long a path" in heard.stderr
    # A pipe that nobody reads any more: writing to it would be the end.
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run([manners, "plain"], env=environment, stderr=writer, timeout=PATIENCE_S, check=True)
    os.close(writer)
    # A pipe that is full: writing to it would never return.
    reader, writer = os.pipe()
    os.write(writer, bytes(fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)))
    assert subprocess.run([manners, "plain"], env=environment, stderr=writer, timeout=PATIENCE_S, check=True)
    os.close(reader)
    os.close(writer)
    # A program closed its stderr, and a file of its own has the number now.
    with (tmp_path / "data").open("w+") as data:
        assert subprocess.run([manners, "plain"], env=environment, stderr=data, timeout=PATIENCE_S, check=True)
    assert (tmp_path / "data").read_text() == ""


def test_where_no_thread_can_be_made_a_slice_is_given_back_with_the_next_launch(
    manners: Path, stage: Stage, manager: ScriptedManager
) -> None:
    with Running(manners, "no_threads", environment=stage.environment()) as running:
        manager.hears(wire.Request)
        number = manager.grant_until(running.speaks)
        running.says("waiting")
        manager.revoke()
        running.go_on()
        manager.hears_release(number)
        manager.serve(contended=True)
        running.ends()
    assert f"cannot start the thread that gives slices back (error {errno.EAGAIN})" in stage.hook_log()


def test_one_that_may_not_connect_says_so_once(manners: Path, stage: Stage) -> None:
    with ScriptedManager(stage.directory, config="grace-ms=100\n"):
        ran = run(manners, "no_sockets", stage.environment(EDGESHARE_HOOK_LOG=""))
    assert (ran.returncode, ran.stdout) == (0, "ok\n")
    (line,) = ran.stderr.splitlines()
    assert f"cannot connect to a manager at {stage.directory} (error {errno.EPERM})" in line


@only_root
def test_one_that_may_not_enter_its_folder_says_so_once(manners: Path, stage: Stage, manager: ScriptedManager) -> None:
    for path in (stage.directory.parent, *stage.directory.parent.rglob("*")):
        path.chmod(0o777)
    stage.directory.chmod(0o700)
    ran = run(manners, "shut_out", stage.environment(EDGESHARE_HOOK_LOG=""))
    assert (ran.returncode, ran.stdout) == (0, "ok\n")
    (line,) = ran.stderr.splitlines()
    assert f"this user may not enter {stage.directory}" in line


def test_a_worker_that_outlives_its_parent_keeps_no_slice(manners: Path, testbed: Testbed) -> None:
    testbed.manager()
    share = ("--percent", "50", "--gpu", "0")
    script = f"{manners} leave_worker; exec sleep {PATIENCE_S}"
    parent = testbed.fork(*testbed.run_arguments(*share, "--", "sh", "-c", script))
    # The child has its copy of the socket, and lives on.
    testbed.until(lambda status: any(one.grants and not one.clients for one in status.allocations))
    ran = testbed.edgeshare(*testbed.run_arguments(*share, "--", str(BURN), "--seconds", "1"), SIMGPU_TAG="next")
    assert ran.returncode == 0, ran.stderr
    executed = {process.tag: sum(process.executed_ns) for process in testbed.machine.processes()}
    assert executed["next"] > 0.3e9
    assert parent.poll() is None
    parent.terminate()
