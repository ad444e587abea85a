"""A program whose threads launch in turn is as fast as without the hook, and gets what it is due beside a rival."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from busy import all_granted, burn
from programs import LINK_DRIVER, compile_program
from testbed import PATIENCE_S, WINDOWS, Testbed

PHASES = range(5)
"""Of turns.c: one thread, two with kernels of their own, one, two with the same kernels, one."""

PHASE_MS = 500
LAUNCHES = {phase: 32 if phase in (1, 3) else 16 for phase in PHASES}
"""In a round of each."""

BEGINS = re.compile(r"begins (\d)")
ENDED = re.compile(r"ended (\d) rounds (\d+) typical_ns (\d+) sleeps (\d+)")


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("turns") / "turns", "turns.c", *LINK_DRIVER)


def under_a_share(testbed: Testbed, turns: Path, percent: int) -> subprocess.Popen[str]:
    command = ("env", "SIMGPU_TAG=turns", str(turns), str(PHASE_MS))
    return testbed.popen(*testbed.run_arguments("--gpu", "0", "--percent", str(percent), "--", *command))


def output(process: subprocess.Popen[str]) -> str:
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, stderr
    return stdout


def test_threads_in_turn_are_as_fast_as_without_the_hook(testbed: Testbed, turns: Path) -> None:
    """At least 0.9 times, by the time that most rounds take; and hardly a launch is put to sleep."""
    command = ["env", "SIMGPU_TAG=bare", str(turns), str(PHASE_MS)]
    bare = subprocess.Popen(command, env=testbed.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    bare_ns = [int(typical_ns) for _, _, typical_ns, _ in ENDED.findall(output(bare))]
    testbed.manager()
    hooked = ENDED.findall(output(under_a_share(testbed, turns, 60)))
    assert len(bare_ns) == len(hooked) == len(PHASES)
    rates = [bare / int(typical_ns) for bare, (_, _, typical_ns, _) in zip(bare_ns, hooked, strict=True)]
    assert min(rates) >= 0.9, rates
    for phase, rounds, _, sleeps in hooked:
        assert int(sleeps) < 0.01 * int(rounds) * LAUNCHES[int(phase)], hooked


def shares_percents(testbed: Testbed, turns: Path) -> dict[int, float]:
    """What the program got in each of its phases, in percent of what the GPU executed."""
    process = under_a_share(testbed, turns, 30)
    assert process.stdout is not None
    begun: dict[str, int] = {}
    shares: dict[int, float] = {}
    for line in process.stdout:
        executed = testbed.machine.executed_ns(0)
        if BEGINS.match(line):
            begun = executed
        elif ended := ENDED.match(line):
            spent = {name: executed[name] - begun.get(name, 0) for name in executed}
            shares[int(ended[1])] = 100 * spent["turns"] / sum(spent.values())
    output(process)
    return shares


def best_of_each(measure: Callable[[], dict[int, float]], least: float) -> dict[int, float]:
    """The most that each phase came to, in as many runs as it takes for all to reach ``least``, which are few."""
    best = dict.fromkeys(PHASES, 0.0)
    for _ in range(WINDOWS):
        measured = measure()
        best = {phase: max(best[phase], measured[phase]) for phase in PHASES}
        if min(best.values()) >= least:
            break
    return best


def test_threads_in_turn_get_what_is_due_beside_a_rival(testbed: Testbed, turns: Path) -> None:
    testbed.manager()
    burn(testbed, "rival", "--kernel-us", "1000", percent=70)
    testbed.until(all_granted(1))
    best = best_of_each(lambda: shares_percents(testbed, turns), 0.9 * 30)
    assert min(best.values()) >= 0.9 * 30, best
