"""The manager's books of a client say what the client holds, whatever is late, lost, or cut off on the way."""

import socket
import time
from contextlib import suppress
from dataclasses import replace

import pytest

from cuda_hook import wire
from edgeshare.contract.errors import InvalidRequest
from tests.kit.hook.connection import Connection
from tests.kit.hook.manager import MIB, PATIENCE_S, WELCOME, ScriptedManager
from tests.kit.hook.stage import SUCCESS, Client, Stage


class Silence:
    """A manager that counts as ever and keeps its answers of one kind back, until it is told to send them."""

    def __init__(self, manager: ScriptedManager, kind: type[wire.ClientRecord]) -> None:
        self._late: list[tuple[Connection, bytes]] = []
        self._manager = manager
        usual = manager.answer
        self._usual = usual

        def keep(connection: Connection, record: wire.ClientRecord) -> bytes | None:
            answer = usual(connection, record)
            if answer is None or not isinstance(record, kind):
                return answer
            self._late.append((connection, answer))
            return None

        manager.answer = keep

    def ends(self) -> None:
        """Sends all that is late, and is on time from now on."""
        self._manager.answer = self._usual
        for connection, answer in self._late:
            # Who has hung up meanwhile does not hear it.
            with suppress(OSError):
                connection.socket.send(answer)


def settles(manager: ScriptedManager, client: Client, used_bytes: int) -> None:
    """Waits until the manager's books say so; what the client asks meanwhile makes it come back to its manager."""
    deadline_s = time.monotonic() + PATIENCE_S
    while manager.used_bytes != used_bytes:
        assert time.monotonic() < deadline_s, f"the books stay at {manager.used_bytes // MIB} MiB"
        client.tell("info")
        client.answer()


@pytest.mark.parametrize("size_mib", [100, 1025], ids=["granted", "refused"])
def test_a_verdict_that_comes_too_late_leaves_nothing_on_the_books(
    size_mib: int, stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {200 * MIB}") == SUCCESS
    silence = Silence(manager, wire.Reserve)
    held = client.do(f"alloc plain {size_mib * MIB}") == SUCCESS
    assert held == (size_mib == 100)
    silence.ends()
    settles(manager, client, (300 if held else 200) * MIB)
    if held:
        assert client.do("free 1") == SUCCESS
        settles(manager, client, 200 * MIB)
    # All else can be had, and no more.
    assert client.do(f"alloc plain {825 * MIB}") != SUCCESS
    assert client.do(f"alloc plain {824 * MIB}") == SUCCESS


def test_what_was_got_and_freed_before_its_verdict_came_is_not_counted(stage: Stage, manager: ScriptedManager) -> None:
    client, other = (stage.client().ready().start() for _ in range(2))
    silence = Silence(manager, wire.Reserve)
    assert client.do(f"alloc plain {1000 * MIB}") == SUCCESS
    assert client.do("free 0") == SUCCESS
    silence.ends()
    settles(manager, client, 0)
    assert other.do(f"alloc plain {1024 * MIB}") == SUCCESS


def test_a_figure_that_comes_too_late_is_not_taken_for_another_ones(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    silence = Silence(manager, wire.MemoryQuery)
    client.tell("info")
    assert client.answer() == [SUCCESS, 1024 * MIB, 1024 * MIB]
    assert client.do(f"alloc plain {300 * MIB}") == SUCCESS
    silence.ends()
    settles(manager, client, 300 * MIB)
    client.tell("info")
    assert client.answer() == [SUCCESS, 724 * MIB, 1024 * MIB]


def test_threads_that_ask_a_silent_manager_at_once_lose_nothing(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    silence = Silence(manager, wire.Reserve)
    assert client.do(f"churn 4 {10 * MIB} 10") == SUCCESS
    silence.ends()
    settles(manager, client, 0)


@pytest.mark.misuses("cuMemGetInfo_v2: destroyed context")
def test_a_context_whose_verdict_comes_too_late_is_counted_once(stage: Stage) -> None:
    with ScriptedManager(stage.directory, context_bytes=100 * MIB) as manager:
        client = stage.client().ready()
        assert client.do("init") == SUCCESS
        silence = Silence(manager, wire.Reserve)
        assert client.do("context") == SUCCESS
        silence.ends()
        assert client.do(f"alloc plain {200 * MIB}") == SUCCESS
        settles(manager, client, 300 * MIB)
        assert client.do("create") == SUCCESS
        assert client.do("destroy") == SUCCESS
        settles(manager, client, 300 * MIB)
        assert client.do("release") == SUCCESS
        settles(manager, client, 0)
        assert not manager.connections[-1].ended


def test_a_child_that_has_the_socket_keeps_no_session_alive_that_its_parent_ended(
    stage: Stage, manager: ScriptedManager
) -> None:
    client = stage.memory_client().ready()
    assert client.do("start") == SUCCESS
    assert client.do(f"plain {300 * MIB}") == SUCCESS
    assert client.do("heir") == SUCCESS
    silence = Silence(manager, wire.Reserve)
    assert client.do(f"plain {100 * MIB}") == SUCCESS
    manager.sees_end()
    silence.ends()
    settles(manager, client, 400 * MIB)


def test_a_program_that_only_gets_memory_comes_back_to_its_manager(stage: Stage) -> None:
    manager = ScriptedManager(stage.directory)
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {300 * MIB}") == SUCCESS
    manager.die()
    with ScriptedManager(stage.directory) as successor:
        settles(successor, client, 300 * MIB)


def test_a_context_that_ends_while_the_socket_takes_nothing_is_not_counted_for_ever(stage: Stage) -> None:
    with ScriptedManager(stage.directory, context_bytes=100 * MIB) as manager:
        client = stage.memory_client().ready()
        assert [client.do("start"), client.do("create 0")] == [SUCCESS] * 2
        assert manager.used_bytes == 200 * MIB
        with manager.paused():
            assert client.do("flood") == SUCCESS
            assert client.do("destroy 0") == SUCCESS
        settles(manager, client, 100 * MIB)


def hang_up_on(manager: ScriptedManager, kind: type[wire.ClientRecord]) -> None:
    """From now on a record of this kind costs a client its connection."""
    usual = manager.answer

    def close(connection: Connection, record: wire.ClientRecord) -> bytes | None:
        if isinstance(record, kind):
            raise InvalidRequest("the test says so")
        return usual(connection, record)

    manager.answer = close


def test_a_client_whose_connection_is_closed_each_time_goes_on_after_the_grace_time(stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, grace_ms=300)) as manager:
        hang_up_on(manager, wire.Request)
        client = stage.client().ready().start()
        assert client.do("launch 100 10") == SUCCESS
        assert client.do("sync") == SUCCESS
        assert len(stage.executed()) == 10
    assert "again and again" in stage.hook_log()


def test_a_hung_manager_is_greeted_once(stage: Stage) -> None:
    """It has a socket, and neither takes the connection nor answers."""
    stage.directory.mkdir()
    (stage.directory / "hook.conf").write_text("failure-policy=open\ngrace-ms=100\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(stage.directory / "hook.sock"))
        listener.listen(16)
        client = stage.client().ready().start()
        for _ in range(3):
            assert client.do("launch 100 10") == SUCCESS
            assert client.do(f"alloc plain {MIB}") == SUCCESS
        listener.setblocking(False)
        first, _ = listener.accept()
        with first:
            assert isinstance(wire.parse(first.recv(wire.RECORD_BYTES_MAX)), wire.Hello)
            with pytest.raises(BlockingIOError):
                listener.accept()
