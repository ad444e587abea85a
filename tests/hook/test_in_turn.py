"""Many functions in turn, as in a step of a framework: a submission asks the slow way once a batch, not each time."""

import subprocess
from pathlib import Path

import pytest
from manager import PATIENCE_S, ScriptedManager
from programs import LINK_DRIVER, Stage, compile_program

ROUNDS = 20


def clock_reads(stage: Stage, tmp_path: Path, threads: int, functions: int) -> list[int]:
    """How often the hook read the clock for launches of known functions, in each thread."""
    program = compile_program(tmp_path / "in_turn", "in_turn.c", "-rdynamic", *LINK_DRIVER)
    result = subprocess.run(
        [program, str(threads), str(functions), str(ROUNDS)],
        env=stage.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return [int(line) for line in result.stdout.split()]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("functions", [200, 400])
def test_functions_in_turn_are_launched_without_a_look_at_the_clock(
    functions: int, threads: int, stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    manager.serve(contended=False)
    reads = clock_reads(stage, tmp_path, threads, functions)
    assert len(reads) == threads
    # Where each has to ask, it is one for each launch and more. Of all threads, as one that a processor is taken from
    # finds its batch closed, and asks for what the others do not.
    assert sum(reads) < threads * functions * ROUNDS / 4
