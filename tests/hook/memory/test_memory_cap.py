"""The cap on memory: exact, told as it is, and kept when the manager is away."""

import subprocess
import sys
from dataclasses import replace

import pytest

from cuda_hook import wire
from tests.kit.hook.manager import MIB, WELCOME, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Stage

KINDS = ["plain", "pitch", "managed", "async"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_allocation_over_the_cap_is_refused_exactly(kind: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    assert client.do(f"alloc {kind} {1000 * MIB}") == SUCCESS
    assert client.do(f"alloc {kind} {24 * MIB + MIB}") == OUT_OF_MEMORY
    assert client.do(f"alloc {kind} {24 * MIB}") == SUCCESS
    assert client.do(f"alloc {kind} {MIB}") == OUT_OF_MEMORY
    assert manager.used_bytes == 1024 * MIB


@pytest.mark.parametrize(("kind", "free"), [("plain", "free"), ("managed", "free"), ("async", "freeasync")])
def test_what_is_freed_can_be_had_again(kind: str, free: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    for index in range(5):
        assert client.do(f"alloc {kind} {1024 * MIB}") == SUCCESS
        assert client.do(f"{free} {index}") == SUCCESS
    # What a pool has to give back, it gives back when its streams are waited for.
    assert client.do("sync") == SUCCESS
    assert manager.used_bytes == 0


def test_the_cap_is_the_allocations_not_the_processes(stage: Stage, manager: ScriptedManager) -> None:
    first, second = (stage.client().ready().start() for _ in range(2))
    assert first.do(f"alloc plain {600 * MIB}") == SUCCESS
    assert second.do(f"alloc plain {600 * MIB}") == OUT_OF_MEMORY
    assert second.do(f"alloc plain {424 * MIB}") == SUCCESS


def test_the_queries_agree_with_the_cap(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    client.tell("total")
    assert client.answer() == [SUCCESS, 1024 * MIB]
    client.tell("info")
    assert client.answer() == [SUCCESS, 1024 * MIB, 1024 * MIB]
    assert client.do(f"alloc plain {300 * MIB}") == SUCCESS
    client.tell("info")
    assert client.answer() == [SUCCESS, 724 * MIB, 1024 * MIB]


def test_the_total_is_known_before_there_is_a_context(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready()
    assert client.do("init") == SUCCESS
    client.tell("total")
    assert client.answer() == [SUCCESS, 1024 * MIB]


def test_nvml_agrees_with_the_cap(stage: Stage, manager: ScriptedManager) -> None:
    """Asked by a process that has nothing to do with CUDA."""
    script = (
        "import json, pynvml\n"
        "pynvml.nvmlInit()\n"
        "device = pynvml.nvmlDeviceGetHandleByIndex(0)\n"
        "for ask in (None, pynvml.nvmlMemory_v2):\n"
        "    memory = pynvml.nvmlDeviceGetMemoryInfo(device, version=ask)\n"
        "    print(memory.total, memory.free, memory.used)\n"
    )
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {300 * MIB}") == SUCCESS
    result = subprocess.run(
        [sys.executable, "-c", script], env=stage.environment(), text=True, capture_output=True, check=True
    )
    assert result.stdout.splitlines() == [f"{1024 * MIB} {724 * MIB} {300 * MIB}"] * 2
    assert result.stderr == ""


def test_free_is_never_more_than_the_device_has(stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, memory_cap_bytes=1 << 45)):
        client = stage.client().ready().start()
        client.tell("info")
        _, free, total = client.answer()
        assert 0 < free < total == 4096 * MIB


def test_wrong_calls_fail_as_the_driver_has_it(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready().start()
    bare = stage.client(LD_PRELOAD="").ready().start()
    for command in ("alloc plain 0", "alloc nowhere 4096"):
        assert client.do(command) == bare.do(command) != SUCCESS
    assert manager.used_bytes == 0


def test_a_refusal_of_the_driver_gives_the_reservation_back(stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, memory_cap_bytes=1 << 45)) as manager:
        client = stage.client().ready().start()
        assert client.do(f"alloc plain {1 << 44}") == OUT_OF_MEMORY
        assert manager.used_bytes == 0


@pytest.mark.parametrize(("make", "end"), [("context", "release"), ("create", "destroy")])
def test_a_context_that_ends_gives_its_memory_back(make: str, end: str, stage: Stage, manager: ScriptedManager) -> None:
    client = stage.client().ready()
    assert client.do("init") == SUCCESS
    assert client.do(make) == SUCCESS
    for _ in range(4):
        assert client.do(f"alloc plain {100 * MIB}") == SUCCESS
    assert client.do(end) == SUCCESS
    assert manager.used_bytes == 0


def test_without_a_manager_the_cap_last_known_holds(stage: Stage) -> None:
    manager = ScriptedManager(stage.directory)
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {1000 * MIB}") == SUCCESS
    manager.die()
    assert client.do(f"alloc plain {25 * MIB}") == OUT_OF_MEMORY
    assert client.do(f"alloc plain {24 * MIB}") == SUCCESS
    assert client.do("free 0") == SUCCESS
    assert client.do(f"alloc plain {1000 * MIB}") == SUCCESS


def test_a_cap_in_the_config_holds_when_there_never_was_a_manager(stage: Stage) -> None:
    stage.directory.mkdir()
    (stage.directory / "hook.conf").write_text(f"memory-cap-bytes={100 * MIB}\n")
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {101 * MIB}") == OUT_OF_MEMORY
    assert client.do(f"alloc plain {100 * MIB}") == SUCCESS
    client.tell("info")
    assert client.answer() == [SUCCESS, 0, 100 * MIB]


def test_a_new_manager_hears_what_a_client_has(stage: Stage) -> None:
    """It is told when the client joins again, which its next launch makes it do."""
    manager = ScriptedManager(stage.directory)
    client = stage.client().ready().start()
    assert client.do(f"alloc plain {300 * MIB}") == SUCCESS
    manager.die()
    with ScriptedManager(stage.directory, replace(WELCOME, epoch=2)) as successor:
        client.tell("launch 100")
        successor.hears(wire.Request)
        successor.hears(wire.Declare)
        assert successor.used_bytes == 300 * MIB
        successor.grant()
        assert client.answer() == [SUCCESS]
        assert client.do("free 0") == SUCCESS
        assert successor.used_bytes == 0


def test_threads_and_processes_that_race_for_the_last_bytes_lose_none(stage: Stage, manager: ScriptedManager) -> None:
    clients = [stage.client().ready().start() for _ in range(3)]
    for client in clients:
        client.tell(f"churn 4 {10 * MIB} 100")
    while not all(client.says_within(0.01) for client in clients):
        # Refused by others' allowances, each asks for what all leave: nobody ever has more than the cap.
        assert 0 <= manager.used_bytes <= 1024 * MIB
    for client in clients:
        assert client.answer() == [SUCCESS]
        assert client.do("sync") == SUCCESS
    assert manager.used_bytes == 0
    assert clients[0].do(f"alloc plain {1024 * MIB}") == SUCCESS
