"""What the demo starts ends with it, and says why when it ended early."""

import os
import select
import signal
import sys
from pathlib import Path

import pytest

from edgeshare.cli.demo_programs import Programs
from edgeshare.contract.errors import Unavailable


def wait_for_end(pidfd: int) -> bool:
    """Whether the process ended; only a safety limit keeps it from waiting for ever."""
    ended = select.select([pidfd], [], [], 60)[0]
    os.close(pidfd)
    return bool(ended)


def interrupted(logs: Path, pidfds: list[int]) -> None:
    with Programs(logs) as programs:
        for name in ("one", "two"):
            program = programs.start(name, ["sleep", "600"], os.environ)
            pidfds.append(os.pidfd_open(program.pid))
        raise KeyboardInterrupt


def test_every_program_is_ended_also_when_something_goes_wrong(tmp_path: Path) -> None:
    pidfds: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path, pidfds)
    assert [wait_for_end(pidfd) for pidfd in pidfds] == [True, True]


def test_a_program_that_does_not_listen_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeshare.cli.demo_programs.END_S", 0.2)
    script = (
        "import pathlib, signal, subprocess, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "child.wait()\n"
    )
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    with Programs(tmp_path) as programs:
        stubborn = programs.start("stubborn", [sys.executable, "-c", script, str(ready)], os.environ)
        grandchild = os.pidfd_open(int(ready.read_text()))
    assert stubborn.status() == -signal.SIGKILL
    assert wait_for_end(grandchild)


def test_a_program_that_ended_early_is_an_error_that_names_its_log(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        failed = programs.start("failed", ["sh", "-c", "echo it broke >&2; exit 3"], os.environ)
        assert failed.status(wait_s=30) == 3
        with pytest.raises(Unavailable, match=r"failed ended with status 3: it broke") as caught:
            failed.check()
    assert str(tmp_path / "failed.log") in str(caught.value)
    assert "\n" not in str(caught.value)
