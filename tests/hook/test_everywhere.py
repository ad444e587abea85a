"""Threads, streams, contexts and devices of a process are gated as one; what a capture takes in passes."""

from pathlib import Path

import pytest
from manager import ScriptedManager
from programs import LINK_DRIVER, SUCCESS, Client, Stage, compile_program

from cuda_hook import wire
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine


@pytest.mark.parametrize(("threads", "launches"), [(6, 60), (24, 15), (80, 6)])
def test_a_process_is_gated_as_a_whole_on_all_its_devices(
    threads: int, launches: int, stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    """Each thread has a context and three streams: more of all of them than the hook tells apart, too."""
    create(stage.log.parent / "two", gpus=2)
    machine = Machine(stage.log.parent / "two")
    program = compile_program(tmp_path / "everywhere", "everywhere.c", *LINK_DRIVER)
    environment = stage.environment(**variables(stage.log.parent / "two", {}))

    def executed() -> int:
        return sum(len(machine.log(gpu)[0]) for gpu in range(2))

    client = Client([str(program), str(threads), str(launches), "500"], environment)
    try:
        client.ready()
        client.tell("go")
        manager.hears(wire.Request)
        assert executed() == 0
        for _ in range(2):
            number = manager.grant(contended=True)
            before = executed()
            while executed() < before + 20:
                pass
            manager.revoke()
            manager.hears_release(number)
            seen = executed()
            assert [gpu.queued for gpu in machine.gpus()] == [0, 0]
            assert client.idle()
            assert executed() == seen
        manager.grant(contended=False)
        assert client.answer() == [SUCCESS]
        assert executed() == threads * launches
        assert all(machine.log(gpu)[0] for gpu in range(2))
    finally:
        client.kill()
