"""Streams and contexts that one thread ends, or captures, while another has something submitted to them. What the hook
asks the driver of what is no more fails any test (``nothing_misused``)."""

import subprocess
from pathlib import Path

import pytest
from manager import PATIENCE_S, ScriptedManager
from programs import LINK_DRIVER, Stage, compile_program


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
