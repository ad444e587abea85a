"""A guest in real programs: whatever they do with themselves, they run as they do without the hook."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from manager import PATIENCE_S, WELCOME, ScriptedManager
from programs import LINK_DRIVER, Stage, compile_program

from cuda_hook import wire

ROOT_ONLY = ("other_user", "other_root")
THINGS = [
    "plain",
    "spawn",
    "fork_anywhen",
    "other_user",
    "other_root",
    "close_all",
    "full_table",
    "sandbox",
    "storm",
    "small_stacks",
    "at_each_step",
    "keep_errno",
    "leaving_threads",
    "cancelled_threads",
    "work_at_exit",
]


@pytest.fixture(scope="session")
def manners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with all of these things in it."""
    return compile_program(tmp_path_factory.mktemp("manners") / "manners", "manners.c", *LINK_DRIVER)


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


@pytest.mark.parametrize("contended", [True, False], ids=["contended", "alone"])
@pytest.mark.parametrize("thing", THINGS)
def test_the_hook_changes_nothing_of(
    thing: str, contended: bool, manners: Path, stage: Stage, manager: ScriptedManager
) -> None:
    if thing in ROOT_ONLY and os.geteuid() != 0:
        pytest.skip("only root may do this")
    manager.serve(contended)
    bare = run(manners, thing, stage.environment(LD_PRELOAD=""))
    assert (bare.returncode, bare.stdout.splitlines()[:1]) == (0, ["ok"]), bare
    hooked = run(manners, thing, stage.environment())
    assert said(hooked) == said(bare), stage.hook_log()[-2000:]
    # It was a client, and had to ask.
    assert manager.said(wire.Request)


class Running:
    """A thing that waits for words in between."""

    def __init__(self, program: Path, thing: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [program, thing], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def says(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == line + "\n"

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
    with Running(manners, "left_batch", stage.environment()) as running:
        manager.hears(wire.Request)
        number = manager.grant(contended=contended)
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
    with Running(manners, "cancelled_in_driver", stage.environment()) as running:
        manager.hears(wire.Request)
        number = manager.grant(contended=False)
        running.says("waiting")
        manager.revoke()
        manager.hears_release(number)
        manager.serve(contended=False)
        running.go_on()
        running.ends()


def test_signals_keep_nobody_from_seeing_that_the_manager_is_gone(manners: Path, stage: Stage) -> None:
    manager = ScriptedManager(stage.directory, replace(WELCOME, grace_ms=100))
    with Running(manners, "storm_at_gate", stage.environment()) as running:
        manager.hears(wire.Request)
        manager.die()
        running.ends()


def test_an_environment_that_is_cleared_leads_nobody_astray(manners: Path, stage: Stage) -> None:
    manager = ScriptedManager(stage.directory)
    manager.serve(contended=True)
    with Running(manners, "no_environment", stage.environment()) as running:
        running.says("waiting")
        manager.die()
        with ScriptedManager(stage.directory, replace(WELCOME, epoch=2)) as successor:
            successor.serve(contended=True)
            running.go_on()
            running.ends()
            assert successor.said(wire.Request)
