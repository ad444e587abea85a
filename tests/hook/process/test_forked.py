"""A forked child is a client in its own name from its first question on; until then, like a handler, it takes no
lock."""

import platform
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simgpu.native import LIBRARIES
from tests.kit.hook.manager import ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, Client, Stage, compile_program

LINK_NVML = (f"-L{LIBRARIES}", "-l:libnvidia-ml.so.1", f"-Wl,-rpath-link,{LIBRARIES}")


@pytest.fixture
def program(stage: Stage, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Compiles and starts a program; it is ended with the test."""
    running: list[Client] = []

    def start(source: str, *argv: str) -> Client:
        made = compile_program(tmp_path / "program", f"process/{source}", *LINK_DRIVER, *LINK_NVML)
        running.append(Client([str(made), *argv], stage.environment()))
        return running[-1]

    yield start
    for client in running:
        client.kill()


@pytest.mark.parametrize(("asks", "told"), [("init", 0), ("nvml", 1024), ("total", 1024)])
def test_a_child_that_asks_joins_in_its_own_name(
    asks: str, told: int, program: Callable[..., Client], manager: ScriptedManager
) -> None:
    """The hook began in the parent, and the driver did not."""
    client = program("forked.c", asks)
    assert client.line() == "parent: 1024"
    _, _, child = client.line().partition(" ")
    assert int(child.partition(": ")[2]) == told
    assert [manager.client(place).pid for place in (0, 1)] == [client.process.pid, int(child.partition(":")[0])]
    assert not any(connection.ended for connection in manager.connections)
    client.tell("")
    # The parent's session is as it was.
    assert client.line() == "parent: 1024"
    assert len(manager.connections) == 2


@pytest.mark.misuses("*: unknown *")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="steps by x86-64's trap flag")
def test_a_handler_at_any_step_of_the_books_takes_no_lock(
    program: Callable[..., Client], manager: ScriptedManager
) -> None:
    client = program("handlers.c")
    assert int(client.line()) > 1000
    assert client.end() == (0, "")
