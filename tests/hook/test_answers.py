"""What the driver answers when the hook asks whether work has ended, and what counts as its end."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.hook.manager import PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import SUCCESS, Client, Stage, compile_program

NOT_READY = 600
ASKED = 5
"""So often it is asked, and answers the same."""

PROGRAM = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
def launch():
    return cu.cuLaunchKernel(ctypes.c_void_p(1), 1, 1, 1, 1, 1, 1, 0, None, None, None)
def answer(result):
    return cu.marks_answer(result) and 0
def asked():
    return cu.marks_asked()
cu.cuInit(0)
cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
print("ready", flush=True)
for line in sys.stdin:
    name, *numbers = line.split()
    print("=", globals()[name](*map(int, numbers)) or 0, flush=True)
"""


@pytest.fixture
def client(stage: Stage, manager: ScriptedManager, tmp_path: Path) -> Iterator[Client]:
    """A program, under a manager, on a driver that answers what it is told to: of work that has not ended, so far."""
    compile_program(tmp_path / "libcuda.so.1", "marks_driver.c", "-shared", "-fPIC")
    client = Client([sys.executable, "-c", PROGRAM], stage.environment(LD_LIBRARY_PATH=str(tmp_path)))
    client.ready()
    assert client.do(f"answer {NOT_READY}") == SUCCESS
    yield client
    client.kill()


def revoked(client: Client, manager: ScriptedManager) -> int:
    """A grant under which it has launched, and which is called back."""
    client.tell("launch")
    number = manager.grant_until(client.answers)
    assert client.answer() == [SUCCESS]
    manager.revoke()
    return number


def is_asked_more(client: Client, manager: ScriptedManager, number: int) -> bool:
    """Whether it is asked on; False where the grant has been given back."""
    more = client.do("asked") + ASKED
    deadline_s = time.monotonic() + PATIENCE_S
    while client.do("asked") < more and not manager.released(number):
        assert time.monotonic() < deadline_s, "it is asked no more"
    return not manager.released(number)


@pytest.mark.parametrize("answer", [1, 3, 201, 400, 709, 800, 900, 901, 905, 906, 908, 999])
def test_an_answer_that_says_nothing_of_the_work_is_no_end(
    answer: int, client: Client, manager: ScriptedManager
) -> None:
    number = revoked(client, manager)
    assert is_asked_more(client, manager, number)
    client.do(f"answer {answer}")
    assert is_asked_more(client, manager, number)
    client.do(f"answer {SUCCESS}")
    manager.hears_release(number)


@pytest.mark.parametrize(
    "answer", [SUCCESS, 4, 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911]
)
def test_nothing_runs_after_a_fault(answer: int, client: Client, manager: ScriptedManager) -> None:
    number = revoked(client, manager)
    assert is_asked_more(client, manager, number)
    client.do(f"answer {answer}")
    manager.hears_release(number)


def test_a_marker_in_a_capture_is_none(client: Client, manager: ScriptedManager) -> None:
    """What it was to end counts by its estimate, as where none can be recorded."""
    number = revoked(client, manager)
    client.do("answer 907")
    manager.hears_release(number)


def test_work_that_takes_far_longer_than_ever_is_given_back_when_it_has_ended(
    stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client().ready().start()
    usual = manager.answer
    manager.serve(contended=True)
    assert client.do("loop 20 50") == SUCCESS
    assert client.do("sync") == SUCCESS
    manager.answer = usual
    client.tell("launch 100000")
    number = manager.grant_until(client.answers)
    assert client.answer() == [SUCCESS]
    manager.revoke()
    manager.hears_release(number)
    assert [each.kind for each in stage.executed()].count("kernel") == 51
