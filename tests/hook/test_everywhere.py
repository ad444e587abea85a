"""Threads, streams, contexts and devices of a process are gated as one; what a capture takes in passes."""

from pathlib import Path

import pytest

from cuda_hook import wire
from sharemgr.node.memory.allowances import Memory
from simgpu.create import create
from simgpu.environment import variables
from simgpu.machine import Machine
from tests.kit.hook.manager import MIB, MS, ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, SUCCESS, Client, Stage, compile_program


@pytest.mark.parametrize("threads", [6, 24, 80])
def test_a_process_is_gated_as_a_whole_on_all_its_devices(
    threads: int, stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    """Each thread has a context and three streams: more of all of them than the hook tells apart, too."""
    create(stage.log.parent / "two", gpus=2)
    machine = Machine(stage.log.parent / "two")
    manager.memory = Memory("scripted", 16384 * MIB, ("first", "second"), {})
    program = compile_program(tmp_path / "everywhere", "everywhere.c", *LINK_DRIVER)
    environment = stage.environment(**variables(stage.log.parent / "two", {}))

    def executed() -> int:
        # The hook queues some functions of the host to time launches.
        return sum(interval.kind == "kernel" for gpu in range(2) for interval in machine.log(gpu)[0])

    client = Client([str(program), str(threads), "500"], environment)
    try:
        client.ready()
        client.tell("go")
        manager.hears(wire.Request)
        assert executed() == 0
        for _ in range(2):
            before = executed()
            number = manager.grant_until(lambda least=before + 20: executed() >= least)
            manager.revoke()
            manager.hears_release(number)
            seen = executed()
            assert [gpu.queued for gpu in machine.gpus()] == [0, 0]
            assert client.idle()
            assert executed() == seen
        client.tell("end")
        manager.grant_until(client.answers)
        result, launches = client.answer()
        assert result == SUCCESS
        assert executed() == launches
        assert all(machine.log(gpu)[0] for gpu in range(2))
    finally:
        client.kill()


MODES = pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread-local", "relaxed"])


@MODES
def test_a_stream_that_follows_a_capture_captures_too(mode: int, stage: Stage, manager: ScriptedManager) -> None:
    """Nothing of it asks for a grant before the graph is launched, and that is one burst of all."""
    client = stage.client().ready().start()
    assert [client.do("stream 1"), client.do("stream 1")] == [SUCCESS, SUCCESS]
    for command in (f"capture 1 {mode}", "launch 1000 1 1", "join 1 2", "launch 1000 2 2", "join 2 1", "endcapture 1"):
        assert client.do(command) == SUCCESS, command
    assert manager.said(wire.Request) == []
    stage.holds_until_granted(manager, client, "graph 0 2")
    assert sum(interval.end_ns - interval.begin_ns for interval in stage.executed()) == 3 * MS


@MODES
def test_other_streams_stay_gated_while_one_captures(mode: int, stage: Stage, manager: ScriptedManager) -> None:
    """And slices that begin and end meanwhile, with all that the hook then asks the driver, do not break it."""
    client = stage.client().ready().start()
    assert [client.do("stream 1"), client.do("stream 1")] == [SUCCESS, SUCCESS]
    assert client.do(f"capture 1 {mode}") == SUCCESS
    for requests in (1, 2):
        client.tell("launch 500 5 2")
        manager.hears(wire.Request, requests)
        assert client.idle()
        number = manager.grant_until(client.answers)
        assert client.answer() == [SUCCESS]
        assert client.do("launch 500 1 1") == SUCCESS
        manager.revoke()
        manager.hears_release(number)
        assert len(stage.executed()) == 5 * requests
    assert client.do("endcapture 1") == SUCCESS


def test_what_a_capture_forbids_is_answered_as_without_the_hook(stage: Stage, manager: ScriptedManager) -> None:
    """A launch on the legacy stream while a stream that blocks it captures: the driver's error, and at once."""
    answers = []
    for preload in ("", str(stage.hook)):
        client = stage.client(LD_PRELOAD=preload).ready().start()
        commands = [
            "stream 0",
            "capture 1 0",
            "launch 100 1 1",
            "launch 100 1 0",
            "launch 100 1 1",
            "endcapture 1",
            "sync",
        ]
        answers.append([client.do(command) for command in commands])
    assert answers[0] == answers[1]
    assert set(answers[0]) > {SUCCESS}
    assert manager.said(wire.Request) == []
