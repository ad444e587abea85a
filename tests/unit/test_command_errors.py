"""How the ``edgeshare`` command ends where something failed."""

import asyncio
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from edgeshare import cli
from edgeshare.contract.errors import InvalidRequest, Unavailable


@pytest.fixture
def ends_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], object]:
    """Runs a command that raises this."""

    def run(error: BaseException) -> object:
        @click.command
        def failing() -> None:
            raise error

        monkeypatch.setattr(cli, "cli", failing)
        monkeypatch.setattr(sys, "argv", ["edgeshare"])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        return raised.value.code

    return run


def test_an_error_is_a_line(ends_with: Callable[[BaseException], object], capsys: pytest.CaptureFixture[str]) -> None:
    assert ends_with(Unavailable("no API server")) == 1
    assert capsys.readouterr() == ("", "edgeshare: no API server\n")


def test_each_error_of_tasks_that_ran_together_is_a_line(
    ends_with: Callable[[BaseException], object], capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def inner() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail(InvalidRequest("no such node")))
            tasks.create_task(fail(Unavailable("no API server")))

    async def outer() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail(Unavailable("no API server")))
            tasks.create_task(inner())

    with pytest.raises(BaseExceptionGroup) as raised:
        asyncio.run(outer())
    assert ends_with(raised.value) == 1
    said = capsys.readouterr().err.splitlines()
    assert sorted(said) == ["edgeshare: no API server", "edgeshare: no such node"]


def test_what_is_no_error_of_ours_beside_one_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command
    def failing() -> None:
        raise ExceptionGroup("both", [Unavailable("no API server"), ZeroDivisionError()])

    monkeypatch.setattr(cli, "cli", failing)
    monkeypatch.setattr(sys, "argv", ["edgeshare"])
    with pytest.raises(ExceptionGroup) as raised:
        cli.main()
    assert [type(each) for each in raised.value.exceptions] == [ZeroDivisionError]
    assert capsys.readouterr().err == "edgeshare: no API server\n"


@pytest.mark.parametrize("command", ["demo", "simgpu"])
def test_where_simulated_machines_are_not_installed_what_needs_them_says_what_is_to_be(command: str) -> None:
    program = "import sys; sys.modules['simgpu'] = None; from edgeshare.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"edgeshare: edgeshare {command} needs simgpu")
    assert done.stderr.endswith(": pip install 'edgeshare-simgpu'\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["labeller", "--interval"], ["trace", "--output", "-", "--seconds"]])
def test_a_time_that_is_no_number_is_wrong_usage(words: list[str]) -> None:
    told = CliRunner().invoke(cli.cli, [*words, "nan"])
    assert (told.exit_code, told.exception.__class__) == (2, SystemExit)
    assert f"Invalid value for '{words[-1]}': nan is no number" in told.output
