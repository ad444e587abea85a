"""Odd but legal programs: what the driver answers them is the same with the hook, alone and beside a rival."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from simgpu.native import BURN
from tests.kit.hook.stage import LINK_DRIVER, compile_program
from tests.kit.manager.testbed import EDGESHARE, Testbed
from tests.kit.processes.waiting import PATIENCE_S

THINGS = [
    "threads",
    "leaving_threads",
    "neighbours",
    "streams",
    "events",
    "loose_events",
    "chains",
    "default_streams",
    "contexts",
    "both_kinds_of_context",
    "two_gpus",
    "graphs",
    "capture_beside_waits",
    "broken_capture",
    "signalling_host_functions",
    "blocking_host_functions",
    "cooperative",
    "long_kernel",
    "deep_queue",
    "left_behind",
    "wrong_arguments",
    "pools",
    "queries",
    "fork_after",
    "fork_before",
]
LAUNCH_NOTHING = {"queries", "wrong_arguments"}

SCRIPT = 'for thing in "$@"; do echo "thing $thing"; SIMGPU_TAG=$thing timeout 60 "$0" "$thing"; echo "status $?"; done'
"""One shell runs them all: an allocation in which programs come and go."""

Answers = dict[str, str]

MISUSES = ("*: no context", "*: in a forked child", "*: unknown *", "*: destroyed context")
"""Of wrong_arguments, queries, fork_after and contexts, which all run where the first test asks for an answer."""

pytestmark = pytest.mark.misuses(*MISUSES)


class Programs:
    """The compiled program on a machine with a manager."""

    def __init__(self, testbed: Testbed, program: Path) -> None:
        self._testbed = testbed
        self._command = ["sh", "-c", SCRIPT, str(program)]

    def bare(self, *things: str) -> Answers:
        """What each of them prints on the driver alone."""
        return self._read([*self._command, *things])

    def hooked(self, percent: int, *things: str) -> Answers:
        """What each of them prints as a client with this share."""
        options = self._testbed.run_arguments("--percent", str(percent))
        return self._read([EDGESHARE, *options, "--", *self._command, *things])

    def executed_ns(self, thing: str) -> int:
        """GPU time of all processes of that name."""
        processes = self._testbed.machine.processes()
        return sum(sum(process.executed_ns) for process in processes if process.tag == thing)

    def _read(self, command: list[str]) -> Answers:
        done = subprocess.run(
            command, env=self._testbed.environment, capture_output=True, text=True, timeout=5 * PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
        answers = {}
        for block in done.stdout.split("thing ")[1:]:
            name, _, answer = block.partition("\n")
            answers[name] = answer
        return answers


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    """A machine of two GPUs and a manager."""
    root = Path(tempfile.mkdtemp(prefix="es-odd-", dir="/dev/shm"))
    testbed = Testbed(root)
    testbed.manager()
    yield testbed
    testbed.close()
    shutil.rmtree(root)


@pytest.fixture(scope="module")
def odd(testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """The programs."""
    return Programs(testbed, compile_program(tmp_path_factory.mktemp("odd") / "odd", "odd", *LINK_DRIVER))


@pytest.fixture(scope="module")
def bare(odd: Programs) -> Answers:
    """What the driver itself answers."""
    return odd.bare(*THINGS)


@pytest.fixture(scope="module")
def alone(odd: Programs, bare: Answers) -> Answers:
    """The answers with the hook and nobody beside: grants without a rival."""
    one_gpu = odd.hooked(50, *(thing for thing in THINGS if thing != "two_gpus"))
    return {**one_gpu, **odd.hooked(200, "two_gpus")}


@pytest.fixture(scope="module")
def contended(testbed: Testbed, odd: Programs, alone: Answers) -> Answers:
    """The answers with the hook while each GPU has another client that never stops."""
    for gpu in ("0", "1"):
        rival = (str(BURN), "--seconds", "600", "--kernel-us", "1000")
        testbed.fork(*testbed.run_arguments("--percent", "50", "--gpu", gpu, "--", *rival))
    testbed.until(lambda status: sum(each.grants > 0 for each in status.allocations) == 2)
    return odd.hooked(50, *(thing for thing in THINGS if thing != "two_gpus"))


@pytest.mark.parametrize("thing", THINGS)
def test_the_driver_itself_lets_it(thing: str, bare: Answers, odd: Programs) -> None:
    assert bare[thing].endswith("status 0\n"), bare[thing]
    assert (odd.executed_ns(thing) > 0) == (thing not in LAUNCH_NOTHING)


@pytest.mark.parametrize("thing", THINGS)
def test_the_hook_changes_no_answer(thing: str, bare: Answers, alone: Answers) -> None:
    assert alone[thing] == bare[thing]


@pytest.mark.parametrize("thing", [thing for thing in THINGS if thing != "two_gpus"])
def test_a_rival_changes_no_answer(thing: str, bare: Answers, contended: Answers) -> None:
    assert contended[thing] == bare[thing]
