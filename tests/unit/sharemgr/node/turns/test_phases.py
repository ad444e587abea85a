"""The table of an allocation's phases, held against what the code does; and the rarer ways, one by one."""

import json
import subprocess
import sys
from pathlib import Path

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_US as US
from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.commands import Command, Grant, Revoke
from sharemgr.node.turns.phases import TRANSITIONS
from sharemgr.node.turns.settings import Share

HERE = Path(__file__).parent
ROOT = HERE.parents[4]
PLUGIN = "tests.kit.plugins.interpreted_turns"
SCENARIOS = (
    "arbiter",
    *(f"test_{name}.py" for name in ("exclusive", "foreseen_drain", "usual_drain", "waking")),
    "test_openings.py::test_one_that_is_over_its_limit_is_kept_out_and_its_account_says_so",
    "test_openings.py::test_one_that_was_granted_ahead_of_a_drain_waits_no_more_once_several_are_let_in",
)


def called_back(a: Share) -> Arbiter:
    """a was called back at 5 ms under grant 1; b waits."""
    arbiter = Arbiter()
    for name, share in {"a": a, "b": Share(50, 100)}.items():
        arbiter.add(name, share, 0)
        arbiter.join(name, 1, 0)
        arbiter.request(name, 1, 0)
    assert arbiter.tick(5 * MS) == [Revoke("a", 1)]
    return arbiter


def given_up(a: Share) -> tuple[Arbiter, int]:
    """a was called back and did not drain; b holds. And since when."""
    arbiter = called_back(a)
    commands: list[Command] = []
    while not any(isinstance(command, Grant) for command in commands):
        now_ns = arbiter.deadline_ns()
        assert now_ns is not None
        commands = arbiter.tick(now_ns)
    assert arbiter.account("a", now_ns).overlapping
    return arbiter, now_ns


def is_expected_back(arbiter: Arbiter, now_ns: int) -> bool:
    """Whether the device would be kept for a, which has no work."""
    before = arbiter.deadline_ns()
    arbiter.gone("a", 1, now_ns)
    return before != arbiter.deadline_ns()


def test_one_that_dies_while_it_drains_has_no_work() -> None:
    arbiter = called_back(Share(50, 100))
    assert arbiter.gone("a", 1, 6 * MS) == [Grant("b", 2, True)]
    assert arbiter.account("a", 6 * MS).state.value == "idle"


def test_one_that_drained_as_it_said_is_expected_back() -> None:
    arbiter = called_back(Share(50, 100))
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    arbiter.release("a", 1, 1, 5 * MS, False, 6 * MS)
    assert is_expected_back(arbiter, 6 * MS + US)


def test_one_that_drained_as_it_said_waits_for_its_limit() -> None:
    arbiter = called_back(Share(1, 1))
    arbiter.draining("a", 1, 1, 6 * MS, 5 * MS)
    arbiter.release("a", 1, 1, 6 * MS, True, 6 * MS)
    assert arbiter.account("a", 6 * MS).throttled


def test_one_that_drained_at_last_is_expected_back() -> None:
    arbiter, now_ns = given_up(Share(50, 100))
    arbiter.release("a", 1, 1, MS, False, now_ns + MS)
    assert is_expected_back(arbiter, now_ns + MS + US)


def test_one_that_drained_at_last_waits_for_its_limit() -> None:
    arbiter, now_ns = given_up(Share(1, 1))
    arbiter.release("a", 1, 1, now_ns, True, now_ns + MS)
    assert arbiter.account("a", now_ns + MS).throttled


def test_one_whose_limit_is_lowered_while_it_is_expected_back_waits_for_it() -> None:
    arbiter = Arbiter()
    arbiter.add("a", Share(50, 50), 0)
    arbiter.join("a", 1, 0)
    arbiter.request("a", 1, 0)
    arbiter.release("a", 1, 1, 2 * MS, False, 2 * MS)
    arbiter.update("a", Share(1, 1), 2 * MS + US)
    arbiter.request("a", 1, 2 * MS + 2 * US)
    assert arbiter.account("a", 2 * MS + 2 * US).throttled


def test_one_that_dies_while_it_is_over_its_limit_has_no_work() -> None:
    arbiter = called_back(Share(1, 1))
    arbiter.release("a", 1, 1, 6 * MS, True, 6 * MS)
    assert arbiter.account("a", 6 * MS).throttled
    arbiter.gone("a", 1, 7 * MS)
    assert arbiter.account("a", 7 * MS).state.value == "idle"


def test_phases_go_the_ways_of_the_table_and_no_others(tmp_path: Path) -> None:
    ways = tmp_path / "ways.json"
    others = [f"{HERE}/{scenario}" for scenario in SCENARIOS]
    this = [f"{__file__}::{name}" for name in globals() if name.startswith("test_one_")]
    command = ["-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider", f"--phases={ways}"]
    done = subprocess.run(
        [sys.executable, *command, *others, *this],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    seen = {(before, after) for before, after in json.loads(ways.read_text())}
    assert seen == {(before.name, after.name) for before, after in TRANSITIONS}
