"""Managers that are late, die, come back or talk nonsense; processes that fork, exec and forget."""

import time
from dataclasses import replace
from itertools import pairwise

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import MIB, PATIENCE_S, WELCOME, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Stage

OPEN = "failure-policy=open\ngrace-ms=300\n"
CLOSED = "failure-policy=closed\ngrace-ms=100\n"


def folder(stage: Stage, config: str) -> None:
    stage.directory.mkdir()
    (stage.directory / "hook.conf").write_text(config)


def test_without_an_allocation_the_hook_stays_out_of_the_way(stage: Stage) -> None:
    client = stage.client().ready().start()
    assert client.do("launch 100 10") == SUCCESS
    assert client.do(f"alloc plain {2000 * MIB}") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert len(stage.executed()) == 10
    assert "has no allocation" in stage.hook_log()
    assert client.end() == (0, "")


def test_with_an_open_policy_launches_pass_after_the_grace_time(stage: Stage) -> None:
    folder(stage, OPEN)
    client = stage.client().ready()
    before = time.monotonic()
    assert client.start().do("launch 100 1000") == SUCCESS
    assert time.monotonic() - before >= 0.2
    assert client.do("sync") == SUCCESS
    assert len(stage.executed()) == 1000
    assert client.end() == (0, "")


def test_with_a_closed_policy_no_launch_passes_until_a_manager_comes(stage: Stage) -> None:
    folder(stage, CLOSED)
    client = stage.client().ready().start()
    client.tell("launch 100 10")
    # Ten grace times: long enough for a wrong policy to show.
    assert not client.says_within(1.0)
    assert stage.executed() == []
    with ScriptedManager(stage.directory, config=CLOSED) as manager:
        manager.hears(wire.Request)
        assert client.idle()
        manager.grant()
        assert client.answer() == [SUCCESS]


def test_a_client_that_ran_unshared_joins_a_manager_that_comes(stage: Stage) -> None:
    folder(stage, OPEN)
    client = stage.client().ready().start()
    assert client.do("loop 1000 100") == SUCCESS
    with ScriptedManager(stage.directory, config=OPEN) as manager:
        client.tell("loop 1000 0")
        manager.hears(wire.Request)
        executed = len(stage.executed())
        assert client.idle()
        number = manager.grant_until(lambda: len(stage.executed()) >= executed + 50, contended=False)
        manager.revoke()
        manager.hears_release(number)
        assert client.idle()


@pytest.mark.parametrize("contended", [False, True])
def test_a_manager_that_dies_in_a_slice_stops_launches_for_the_grace_time(contended: bool, stage: Stage) -> None:
    welcome = replace(WELCOME, grace_ms=1000)
    manager = ScriptedManager(stage.directory, welcome)
    client = stage.client().ready().start()
    client.tell("launch 1000 0")
    manager.hears(wire.Request)
    manager.grant_until(lambda: len(stage.executed()) >= 20, contended)
    before = len(stage.executed())
    manager.die()

    def longest_pause_ns() -> int:
        intervals = stage.executed()[before - 1 :]
        return max((after.begin_ns - before.end_ns for before, after in pairwise(intervals)), default=0)

    deadline_s = time.monotonic() + PATIENCE_S
    while longest_pause_ns() < 500_000_000:
        assert time.monotonic() < deadline_s, "launches do not stop, or do not go on"
    client.tell("sync")
    assert [client.answer(), client.answer()] == [[SUCCESS], [SUCCESS]]
    assert client.end() == (0, "")


def test_a_successor_within_the_grace_time_takes_the_client_over(stage: Stage) -> None:
    manager = ScriptedManager(stage.directory)
    client = stage.client().ready().start()
    client.tell("launch 1000 0")
    manager.hears(wire.Request)
    manager.grant_until(lambda: len(stage.executed()) >= 20)
    manager.die()
    with ScriptedManager(stage.directory, replace(WELCOME, epoch=2)) as successor:
        successor.hears(wire.Request)
        assert client.idle()
        executed = len(stage.executed())
        successor.grant_until(lambda: len(stage.executed()) >= executed + 20)


def test_a_discarded_page_makes_the_client_join_anew(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 1000 500")
    manager.hears(wire.Request)
    pages = manager.client().pages
    assert pages is not None
    pages.discard()
    manager.hears(wire.Request, index=1)
    manager.serve(contended=True)
    manager.grant(1)
    assert client.answer() == [SUCCESS]


@pytest.mark.parametrize("version", [wire.VERSION_MIN, wire.VERSION])
def test_an_older_manager_is_joined_as_well(version: int, stage: Stage) -> None:
    """It finds its own version in the range, and in its page no word of what is newer."""
    with ScriptedManager(stage.directory, replace(WELCOME, version=version)) as manager:
        client = stage.client().ready().start()
        hello = manager.hears(wire.Hello)
        assert (hello.version_min, hello.version_max) == (1, 3)
        client.tell("launch 100 10")
        manager.hears(wire.Request)
        manager.serve(contended=True)
        manager.grant()
        assert client.answer() == [SUCCESS]


def test_a_version_that_was_not_offered_is_not_taken(stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, version=wire.VERSION + 1)) as manager:
        client = stage.client().ready().start()
        client.tell("launch 100 10")
        manager.hears(wire.Hello)
        manager.sees_end()
        assert "its version or its pages are wrong" in stage.hook_log()
        assert client.process.poll() is None


def test_a_page_says_what_was_used_since_it_came(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    usual = manager.answer
    manager.serve(contended=True)
    assert client.do("launch 1000 20") == SUCCESS
    assert client.do("sync") == SUCCESS
    first = manager.used()
    assert first.gpu_ns > 0
    assert first.drained_gpu_ns == first.gpu_ns
    assert (first.queued, first.waits) == (0, 0)
    assert first.idle_since_ns > 0
    pages = manager.client().pages
    assert pages is not None
    manager.answer = usual
    pages.discard()
    # It looks after its manager at its next wait.
    client.tell("launch 1000 1")
    manager.hears(wire.Request, index=1)
    second = manager.used(1)
    assert second.gpu_ns < first.gpu_ns


GARBAGE = {
    "a kind that does not exist": b"\xff\xff\x08\x00\x00\x00\x00\x00",
    "a byte": b"x",
    "too long": b"\x08\x00\x18\x00" + bytes(400),
    "a client's record": wire.encode(wire.Request()),
    "an impossible verdict": wire.encode(wire.Reserved(1, 0, True))[:16] + b"\x07" + bytes(7),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_from_the_manager_ends_the_session_and_nothing_else(
    garbage: bytes, stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client().ready().start()
    manager.answer = lambda connection, record: garbage
    # The cap as last known decides.
    assert client.do(f"alloc plain {1025 * MIB}") == OUT_OF_MEMORY
    manager.sees_end()
    assert client.do(f"alloc plain {1024 * MIB}") == SUCCESS
    assert client.process.poll() is None


def test_an_answer_to_an_old_question_is_passed_over(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    usual = manager.answer

    def with_a_stale_one(connection: object, record: wire.ClientRecord) -> bytes | None:
        assert manager.connections
        if isinstance(record, wire.Reserve):
            manager.connections[0].socket.send(wire.encode(wire.Reserved(4_000_000_000, 0, False)))
        return usual(manager.connections[0], record)

    manager.answer = with_a_stale_one
    assert client.do(f"alloc plain {100 * MIB}") == SUCCESS
    assert manager.used_bytes == 100 * MIB


def test_a_manager_that_does_not_answer_holds_nobody_up_for_long(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    manager.answer = lambda connection, record: None
    assert client.do(f"alloc plain {100 * MIB}") == SUCCESS


@pytest.mark.misuses("*: in a forked child")
def test_a_fork_does_not_disturb_the_slice(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 1000")
    manager.hears(wire.Request)
    number = manager.grant(contended=False)
    assert client.answer() == [SUCCESS]
    # What the driver says to a child that uses its parent's context is not the hook's to decide.
    client.tell("fork launch 1000;sync")
    child = [client.answer() for _ in range(2)]
    assert all(result != [SUCCESS] for result in child)
    assert client.answer() == [SUCCESS]
    client.tell("launch 1000")
    number = manager.keep_until(number, client.answers, contended=False)
    assert client.answer() == [SUCCESS]
    manager.revoke()
    manager.hears_release(number)
    assert len(manager.connections) == 1
    assert len(stage.executed()) == 2


def test_a_child_that_begins_with_cuda_is_a_client_of_its_own(stage: Stage, manager: ScriptedManager) -> None:
    """The parent has not initialised the driver, so the child may; the parent begins afterwards."""
    client = stage.client().ready()
    client.tell("fork init;context;launch 1000;sync")
    manager.hears(wire.Request)
    manager.grant()
    assert [client.answer() for _ in range(5)] == [[SUCCESS]] * 5
    manager.sees_end()
    client.start()
    client.tell("launch 1000")
    manager.hears(wire.Request, index=1)
    assert client.idle()
    manager.grant(1)
    assert client.answer() == [SUCCESS]


@pytest.mark.misuses("*: in a forked child")
def test_a_child_outlives_nothing_of_its_parents_session(stage: Stage, manager: ScriptedManager) -> None:
    """The parent joined; its child tries a context of its own, which joins as another client."""
    client = stage.client().ready()
    assert client.do("init") == SUCCESS
    manager.client()
    client.tell("fork context")
    client.answer()
    assert client.answer() == [SUCCESS]
    manager.sees_end(1)
    assert not manager.client(0).ended
    client.start()
    client.tell("launch 100")
    manager.hears(wire.Request)
    manager.grant()
    assert client.answer() == [SUCCESS]


def test_after_exec_a_process_joins_again(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("exec dlsym")
    manager.sees_end()
    client.ready().start()
    client.tell("launch 100")
    manager.hears(wire.Request, index=1)
    manager.grant(1)
    assert client.answer() == [SUCCESS]


def test_a_program_that_closes_all_descriptors_joins_again(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do("daemon") == SUCCESS
    assert client.do(f"alloc plain {100 * MIB}") in (SUCCESS, OUT_OF_MEMORY)
    manager.sees_end()
    client.tell("launch 100")
    manager.hears(wire.Request, index=1)
    manager.grant(1)
    assert client.answer() == [SUCCESS]


def test_nothing_but_cuda_starts_a_session_or_a_thread(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready()
    assert manager.connections == []
    client.start()
    manager.client()
    assert client.threads() == 1
    client.tell("launch 100")
    manager.hears(wire.Request)
    assert client.threads() == 1
    manager.grant()
    assert client.answer() == [SUCCESS]
    assert client.threads() == 2
