"""A program whose threads launch in turn goes on as without the hook, and beside a rival. How fast and with how much of
the GPU is judged on the virtual clock (tests/virtual/test_threads.py)."""

import subprocess
from pathlib import Path

import pytest

from bench.hook.paired import build
from bench.hook.threads import PHASES, Phase, parse_end
from tests.kit.manager.busy import all_granted, burn
from tests.kit.manager.testbed import Testbed
from tests.kit.processes.forked import Forked
from tests.kit.processes.waiting import PATIENCE_S

PHASE_MS = 500

COLLAPSED = 4
"""One whose threads end each other's slices is slower by hundreds; other work of the machine makes none so slow."""


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("turns.c", tmp_path_factory.mktemp("turns"))


def command(turns: Path, tag: str) -> list[str]:
    return ["env", f"SIMGPU_TAG={tag}", str(turns), str(PHASE_MS)]


def under_a_share(testbed: Testbed, turns: Path, percent: int) -> Forked:
    share = ("--gpu", "0", "--percent", str(percent))
    return testbed.fork(*testbed.run_arguments(*share, "--", *command(turns, "turns")))


def phases(process: subprocess.Popen[str] | Forked) -> list[Phase]:
    """All of its phases, once it has ended."""
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    ended = [phase for phase in map(parse_end, stdout.splitlines()) if phase]
    assert len(ended) == len(PHASES)
    return ended


def test_threads_in_turn_do_not_stop_each_other(testbed: Testbed, turns: Path) -> None:
    """By the time that most rounds take; and hardly a launch is put to sleep."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    bare = phases(subprocess.Popen(command(turns, "bare"), env=testbed.environment, **pipes))
    testbed.manager()
    hooked = phases(under_a_share(testbed, turns, 60))
    slower = [with_.typical_ns / without.typical_ns for without, with_ in zip(bare, hooked, strict=True)]
    assert max(slower) < COLLAPSED, slower
    assert all(phase.sleeps < 0.01 * phase.launches for phase in hooked), hooked


def test_threads_in_turn_go_on_beside_a_rival_that_gets_more(testbed: Testbed, turns: Path) -> None:
    """In each phase they go on; the rival has more in all of them together, as shares hold over seconds, not over each
    half of one."""
    testbed.manager()
    burn(testbed, "rival", "--kernel-us", "1000", percent=70)
    testbed.until(all_granted(1))
    process = under_a_share(testbed, turns, 30)
    assert process.stdout is not None
    seen: list[dict[str, int]] = []
    for line in process.stdout:
        executed = {"turns": 0, "rival": 0} | testbed.machine.executed_ns(0)
        if parse_end(line):
            assert executed["turns"] > seen[-1]["turns"], line
        seen.append(executed)
    assert process.wait(PATIENCE_S) == 0
    # Each phase says when it begins and when it has ended.
    assert len(seen) == 2 * len(PHASES)
    got, rivals = (seen[-1][name] - seen[0][name] for name in ("turns", "rival"))
    assert got < rivals
