"""A grant of a time to come: the one before still runs what it has queued."""

import time

from cuda_hook import wire
from tests.kit.hook.manager import MS, ScriptedManager
from tests.kit.hook.stage import Stage

SOON_NS = 150 * MS
LATE_NS = 60_000 * MS


def test_launches_wait_until_the_device_is_free(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("threads 3 500 20")
    manager.hears(wire.Request)
    free_at_ns = time.monotonic_ns() + SOON_NS
    number = manager.grant(free_at_ns=free_at_ns)
    manager.keep_until(number, client.answers)
    client.answer()
    client.do("sync")
    begins = [executed.begin_ns for executed in stage.executed()]
    # Threads wake a little ahead, by what they usually need, to launch as the device falls free.
    assert len(begins) == 60
    assert min(begins) > free_at_ns - MS


def test_one_that_was_told_another_time_begins_then(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 500 20")
    manager.hears(wire.Request)
    number = manager.grant(free_at_ns=time.monotonic_ns() + LATE_NS)
    assert not client.says_within(0.02)
    assert not stage.executed()
    began_ns = time.monotonic_ns()
    manager.begin(free_at_ns=0)
    manager.keep_until(number, client.answers)
    client.answer()
    client.do("sync")
    assert len(stage.executed()) == 20
    assert time.monotonic_ns() < began_ns + LATE_NS


def test_one_that_is_called_back_before_it_began_releases_at_once(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 500 20")
    manager.hears(wire.Request)
    number = manager.grant(free_at_ns=time.monotonic_ns() + LATE_NS)
    manager.revoke()
    release = manager.hears_release(number)
    assert release.follows
    assert release.gpu_ns == 0
    assert not stage.executed()
    manager.grant_until(client.answers)
    client.answer()
    client.do("sync")
    assert len(stage.executed()) == 20


def test_a_manager_that_dies_before_the_begin_keeps_nobody_waiting(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 500 20")
    manager.hears(wire.Request)
    manager.grant(free_at_ns=time.monotonic_ns() + LATE_NS)
    died_ns = time.monotonic_ns()
    manager.die()
    client.answer()
    client.do("sync")
    # The grace time, and with the open policy on it goes.
    assert time.monotonic_ns() < died_ns + LATE_NS
    assert len(stage.executed()) == 20


def test_a_release_that_nobody_waits_for_is_left_where_the_manager_looks(
    stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client().ready().start()
    client.tell("launch 500 0")
    manager.hears(wire.Request)
    left = 0
    for count in range(1, 21):
        number = manager.grant_until(lambda least=count * 8: len(stage.executed()) >= least)
        manager.promise(looks_at_ns=time.monotonic_ns() + LATE_NS)
        manager.revoke()
        release = manager.finds_release(number)
        assert release.number == number
        assert stage.machine.gpus()[0].queued == 0
        left += not manager.released(number)
    # One that drained sooner than it foretold is sent: somebody could begin.
    assert left > 5


def test_a_release_is_sent_where_the_look_is_over(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("launch 500 0")
    manager.hears(wire.Request)
    number = manager.grant_until(lambda: len(stage.executed()) >= 8)
    manager.promise(looks_at_ns=time.monotonic_ns())
    manager.revoke()
    assert manager.hears_release(number).follows
