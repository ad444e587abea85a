"""Streams and contexts that one thread ends, or captures, while another has something submitted to them. What the hook
asks the driver of what is no more fails any test (``nothing_misused``)."""

import subprocess
from pathlib import Path

import pytest

from simgpu.paces import Pace
from tests.kit.hook.manager import MIB, PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, SUCCESS, Stage, compile_program


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    return compile_program(tmp_path_factory.mktemp("ended") / "ended", "ended.c", *LINK_DRIVER)


@pytest.mark.parametrize("contended", [True, False], ids=["contended", "alone"])
@pytest.mark.parametrize("what", ["stream", "context", "capture"])
def test_what_another_thread_ends_is_let_go_of(
    what: str, contended: bool, ended: Path, stage: Stage, manager: ScriptedManager
) -> None:
    manager.serve(contended)
    done = subprocess.run(
        [ended, what], env=stage.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.parametrize("pace", [Pace("asks slowly", event_query_ns=20_000_000)], ids=["slow"])
@pytest.mark.parametrize("contended", [True, False], ids=["contended", "alone"])
def test_a_stream_that_comes_to_follow_a_capture_is_asked_nothing(
    contended: bool, ended: Path, stage: Stage, manager: ScriptedManager
) -> None:
    """On a driver that takes long to ask a stream, so that the other thread comes in between."""
    manager.serve(contended)
    done = subprocess.run(
        [ended, "spread"], env=stage.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_a_copy_that_fails_is_no_wait(stage: Stage, manager: ScriptedManager) -> None:
    """A kernel takes a thousand times as long as ever, and nothing has waited for it: the copy is of freed memory."""
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {MIB}") == SUCCESS
    usual = manager.answer
    manager.serve(contended=True)
    for command in ("loop 100 50", *["fetch"] * 50, "free 0"):
        assert client.do(command) == SUCCESS
    manager.answer = usual
    client.tell("launch 100000")
    number = manager.grant_until(client.answers)
    assert client.answer() == [SUCCESS]
    client.tell("fetch")
    number = manager.keep_until(number, client.answers)
    assert client.answer() != [SUCCESS]
    manager.hears_release(number)
    assert [each.kind for each in stage.executed()].count("kernel") == 51
