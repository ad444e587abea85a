"""Streams and captures under a grant: which are drained, and which are left alone."""

import subprocess
from pathlib import Path

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import MS, PATIENCE_S, ScriptedManager
from tests.kit.hook.stage import SUCCESS, Client, Stage, compile_program
from tests.kit.programs.compiled import HOOK_INCLUDES, HOOK_SOURCES


def test_all_streams_and_threads_are_one_client(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    for _ in range(3):
        assert client.do("stream 1") == SUCCESS
    client.tell("threads 4 500 0")
    manager.hears(wire.Request)
    for _ in range(4):
        before = len(stage.executed())
        number = manager.grant_until(lambda least=before + 20: len(stage.executed()) >= least)
        manager.revoke()
        manager.hears_release(number)
        executed = len(stage.executed())
        assert stage.machine.gpus()[0].queued == 0
        assert client.idle()
        assert len(stage.executed()) == executed
    client.tell("sync")
    manager.grant_until(client.answers)
    assert [client.answer(), client.answer()] == [[SUCCESS], [SUCCESS]]
    assert stage.machine.gpus()[0].queued == 0
    assert len(manager.connections) == 1


@pytest.mark.parametrize("contended", [True, False])
def test_more_streams_than_can_be_told_apart_are_drained(
    contended: bool, stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client().ready().start()
    for _ in range(150):
        assert client.do("stream 1") == SUCCESS
    client.tell("spread 200 0")
    manager.hears(wire.Request)
    for _ in range(3):
        before = len(stage.executed())
        number = manager.grant_until(lambda least=before + 200: len(stage.executed()) >= least, contended)
        manager.revoke()
        manager.hears_release(number)
        executed = len(stage.executed())
        assert stage.machine.gpus()[0].queued == 0
        assert client.idle()
        assert len(stage.executed()) == executed


def with_streams(count: int, stage: Stage, manager: ScriptedManager) -> Client:
    """A client that knows its kernels to take 0.1 ms, and has no grant."""
    client = stage.client().ready().start()
    for _ in range(count):
        assert client.do("stream 1") == SUCCESS
    client.tell("launch 100 2")
    manager.hears(wire.Request)
    number = manager.grant_until(client.answers, contended=False)
    assert client.answer() == [SUCCESS]
    assert client.do("sync") == SUCCESS
    manager.revoke()
    manager.hears_release(number)
    return client


def under_a_grant(client: Client, manager: ScriptedManager, command: str) -> int:
    """Has a client without one do something under a grant without rivals, so that it may queue 50 ms; the grant's
    number."""
    asked = len(manager.said(wire.Request))
    client.tell(command)
    manager.hears(wire.Request, asked + 1)
    number = manager.grant_until(client.answers, contended=False)
    assert client.answer() == [SUCCESS]
    return number


def test_streams_beyond_those_that_can_be_marked_are_drained_too(stage: Stage, manager: ScriptedManager) -> None:
    """Each stream has one kernel: the last come when all streams told apart, and all markers, are in use."""
    client = with_streams(400, stage, manager)
    number = under_a_grant(client, manager, "spread 100 400")
    manager.revoke()
    manager.hears_release(number)
    assert stage.machine.gpus()[0].queued == 0
    assert len(stage.executed()) == 402


def test_streams_beyond_those_that_can_be_marked_wait_for_none_that_hangs(
    stage: Stage, manager: ScriptedManager
) -> None:
    """It might be waiting for them."""
    client = with_streams(300, stage, manager)
    under_a_grant(client, manager, "launch 100000000")
    client.tell("spread 100 300")
    assert client.answer() == [SUCCESS]
    assert stage.machine.gpus()[0].queued == 301
    assert "none ends: some launches are not counted" in stage.hook_log()


def test_default_streams_of_threads_are_drained_too(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client("getproc_ptsz").ready().start()
    client.tell("threads 3 500 0")
    manager.hears(wire.Request)
    number = manager.grant_until(lambda: len(stage.executed()) >= 20)
    manager.revoke()
    manager.hears_release(number)
    assert stage.machine.gpus()[0].queued == 0
    client.tell("sync")
    manager.grant_until(client.answers)
    assert [client.answer(), client.answer()] == [[SUCCESS], [SUCCESS]]


def test_default_streams_of_threads_that_ended_are_drained_too(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client("getproc_ptsz").ready().start()
    client.tell("threads 3 5000 3")
    manager.hears(wire.Request)
    number = manager.grant_until(client.answers, contended=False)
    assert client.answer() == [SUCCESS]
    manager.revoke()
    manager.hears_release(number)
    assert len(stage.executed()) == 9


@pytest.mark.parametrize("mode", [0, 1, 2], ids=["global", "thread-local", "relaxed"])
def test_a_capture_is_not_gated_and_not_broken(mode: int, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do("stream 1") == SUCCESS
    assert client.do(f"capture 1 {mode}") == SUCCESS
    assert client.do("launch 1000 3 1") == SUCCESS
    assert client.do("endcapture 1") == SUCCESS
    assert manager.said(wire.Request) == []
    stage.holds_until_granted(manager, client, "graph 0 1")
    assert sum(i.end_ns - i.begin_ns for i in stage.executed()) == 3 * MS


def test_a_capture_survives_a_slice_that_ends_meanwhile(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do("stream 1") == SUCCESS
    client.tell("launch 1000 3 1")
    manager.hears(wire.Request)
    number = manager.grant_until(client.answers)
    assert client.answer() == [SUCCESS]
    assert client.do("capture 1 0") == SUCCESS
    assert client.do("launch 1000 1 1") == SUCCESS
    manager.revoke()
    manager.hears_release(number)
    assert client.do("launch 1000 1 1") == SUCCESS
    assert client.do("endcapture 1") == SUCCESS


def test_a_stream_that_ends_takes_nothing_with_it(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do("stream 1") == SUCCESS
    client.tell("launch 1000 5 1")
    manager.hears(wire.Request)
    number = manager.grant_until(client.answers, contended=False)
    assert client.answer() == [SUCCESS]
    assert client.do("endstream 1") == SUCCESS
    manager.revoke()
    manager.hears_release(number)
    assert len(stage.executed()) == 5
    assert stage.machine.gpus()[0].queued == 0


def test_a_thread_whose_place_was_given_away_looks_for_another(tmp_path: Path) -> None:
    """Else its batch would end with another stream's work, and a grant be given back while its own still runs."""
    program = compile_program(tmp_path / "evicted", "evicted.c", *HOOK_INCLUDES, *map(str, HOOK_SOURCES))
    result = subprocess.run([program], check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
