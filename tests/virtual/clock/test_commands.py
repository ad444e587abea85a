"""What the commands over the virtual clock refuse: a line, and an exit status that says whose fault it is."""

import click
import pytest
from click.testing import CliRunner

from tests.kit.virtual import worlds
from tests.kit.virtual.cases import explore
from tests.kit.virtual.figures import mix_figures, record


@pytest.mark.parametrize(
    ("option", "value"),
    [("--first", -1), ("--first", 1 << 63), ("--first", "one"), ("--count", 0), ("--count", -1)],
)
def test_no_case_has_such_a_number(option: str, value: object) -> None:
    done = CliRunner().invoke(explore.main, [option, str(value)])
    assert done.exit_code == 2
    (told,) = done.stderr.splitlines()
    assert option in told
    assert str(value) in told


@pytest.mark.parametrize("command", [explore.main, record.main, mix_figures.main])
def test_where_nothing_can_be_simulated_that_is_said_in_a_line(
    monkeypatch: pytest.MonkeyPatch, command: click.Command
) -> None:
    monkeypatch.setattr(worlds, "reason_not_to", lambda: "this container forbids it")
    # Nothing is recorded, whatever is wrong with that.
    monkeypatch.delattr(worlds, "World")
    done = CliRunner().invoke(command, [])
    assert done.exit_code == 1
    assert done.stderr == "Error: this container forbids it\n"
