"""Every way to get device memory is counted, to the byte, until it is given back."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sharemgr.node.memory.allowances import Memory
from tests.kit.hook.manager import MIB, PATIENCE_S, WELCOME, ScriptedManager
from tests.kit.hook.stage import LINK_DRIVER, OUT_OF_MEMORY, SUCCESS, Client, Stage, compile_program

CAP_MIB = WELCOME.memory_cap_bytes // MIB
LAYERED, SPARSE, DEFERRED = 0x01, 0x40, 0x80
DEVICE, HOST = 1, 2


@pytest.fixture
def client(stage: Stage, manager: ScriptedManager) -> Client:
    manager.serve(contended=False)
    client = stage.memory_client().ready()
    assert client.do("start") == SUCCESS
    return client


@pytest.fixture
def used_mib(manager: ScriptedManager) -> Callable[[], float]:
    return lambda: manager.used_bytes / MIB


Used = Callable[[], float]

KINDS = {
    "plain": (f"plain {MIB}", "free"),
    "managed": (f"managed {MIB}", "free"),
    "pitched": ("pitched 512 2048", "free"),
    "array": ("array 512 512", "free_array"),
    "array of three dimensions": ("array3d 128 64 32 0", "free_array"),
    "layered array": (f"array3d 128 64 32 {LAYERED}", "free_array"),
    "mipmap of one level": ("mipmap 512 512 1", "free_mipmap"),
}
"""What takes exactly one MiB, and what frees it."""


@pytest.mark.parametrize(("make", "end"), KINDS.values(), ids=KINDS)
def test_the_last_byte_fits_and_one_more_is_refused(make: str, end: str, client: Client, used_mib: Used) -> None:
    assert client.do(f"plain {(CAP_MIB - 2) * MIB + 1}") == SUCCESS
    assert client.do(make) == SUCCESS
    assert client.do(make) == OUT_OF_MEMORY
    assert client.do("free 0") == SUCCESS
    assert used_mib() == 1
    assert client.do(f"plain {(CAP_MIB - 2) * MIB}") == SUCCESS
    assert client.do(make) == SUCCESS
    assert client.do("plain 1") == OUT_OF_MEMORY
    for index in (1, 3):
        assert client.do(f"{end} {index}") == SUCCESS
    assert client.do("free 2") == SUCCESS
    assert used_mib() == 0


def test_a_mipmap_counts_all_its_levels(client: Client, used_mib: Used) -> None:
    assert client.do("mipmap 1024 1024 11") == SUCCESS
    # 4 MiB and a third, and what the driver adds to the small ones.
    assert 16 / 3 - 0.01 <= used_mib() < 16 / 3 + 1
    assert client.do("free_mipmap 0") == SUCCESS
    assert used_mib() == 0


def test_an_array_counts_as_the_driver_has_it(client: Client, used_mib: Used) -> None:
    """It says so itself: 100 bytes a row take 512."""
    assert client.do("array 25 8192") == SUCCESS
    assert used_mib() == 4
    assert client.do(f"plain {(CAP_MIB - 6) * MIB}") == SUCCESS
    # Its elements would fit, but not with what the driver adds.
    assert client.do("array 25 8192") == OUT_OF_MEMORY
    assert used_mib() == CAP_MIB - 2


@pytest.mark.parametrize("flag", [SPARSE, DEFERRED])
def test_an_array_without_memory_of_its_own_takes_none(flag: int, client: Client, used_mib: Used) -> None:
    bare = client.do(f"array3d 1024 1024 0 {flag}")
    assert bare != OUT_OF_MEMORY
    assert used_mib() == 0


def test_virtual_memory_counts_until_all_handles_and_mappings_are_gone(client: Client, used_mib: Used) -> None:
    size = 100 * MIB
    assert client.do(f"chunk {size} {DEVICE} 0") == SUCCESS
    assert client.do(f"addresses {1 << 40}") == SUCCESS
    assert used_mib() == 100
    assert client.do(f"map 1 0 {size} 0") == SUCCESS
    assert client.do(f"map 1 {size} {size} 0") == SUCCESS
    assert client.do("release 0") == SUCCESS
    assert used_mib() == 100
    assert client.do(f"unmap 1 0 {size}") == SUCCESS
    assert used_mib() == 100
    assert client.do(f"retain 1 {size}") == SUCCESS
    assert client.do(f"unmap 1 {size} {size}") == SUCCESS
    assert used_mib() == 100
    assert client.do("release 2") == SUCCESS
    assert used_mib() == 0


def test_one_unmap_ends_all_the_mappings_in_its_range(client: Client, used_mib: Used) -> None:
    size = 10 * MIB
    assert client.do(f"addresses {1 << 40}") == SUCCESS
    for index in range(1, 6):
        assert client.do(f"chunk {size} {DEVICE} 0") == SUCCESS
        assert client.do(f"map 0 {index * size} {size} {index}") == SUCCESS
        assert client.do(f"release {index}") == SUCCESS
    assert used_mib() == 50
    assert client.do(f"unmap 0 {2 * size} {3 * size}") == SUCCESS
    assert used_mib() == 20
    assert client.do(f"unmap 0 {size} {size}") == SUCCESS
    assert client.do(f"unmap 0 {5 * size} {size}") == SUCCESS
    assert used_mib() == 0


def test_virtual_memory_is_capped_exactly_and_that_of_the_host_is_not(client: Client, used_mib: Used) -> None:
    assert client.do(f"chunk {(CAP_MIB - 2) * MIB} {DEVICE} 0") == SUCCESS
    assert client.do(f"chunk {4 * MIB} {DEVICE} 0") == OUT_OF_MEMORY
    assert client.do(f"chunk {2 * MIB} {DEVICE} 0") == SUCCESS
    assert client.do(f"chunk {2 * MIB} {DEVICE} 0") == OUT_OF_MEMORY
    assert client.do(f"chunk {2 * MIB} {HOST} 0") != OUT_OF_MEMORY
    assert used_mib() == CAP_MIB


def test_virtual_memory_needs_no_context(stage: Stage, manager: ScriptedManager) -> None:
    client = stage.memory_client().ready()
    assert client.do("init") == SUCCESS
    assert client.do(f"chunk {100 * MIB} {DEVICE} 0") == SUCCESS
    assert manager.used_bytes == 100 * MIB
    assert client.do(f"chunk {CAP_MIB * MIB} {DEVICE} 0") == OUT_OF_MEMORY
    assert client.do("release 0") == SUCCESS
    assert manager.used_bytes == 0


def test_an_export_is_the_exporters(client: Client, used_mib: Used) -> None:
    assert client.do(f"chunk {100 * MIB} {DEVICE} 0") == SUCCESS
    assert client.do("export 0") == SUCCESS
    assert client.do("import_ 1") == SUCCESS
    assert used_mib() == 100
    assert client.do("release 2") == SUCCESS
    assert used_mib() == 100
    assert client.do("release 0") == SUCCESS
    assert used_mib() == 0


def test_memory_of_another_process_is_counted_once(stage: Stage, client: Client, used_mib: Used) -> None:
    other = stage.memory_client().ready()
    assert other.do("start") == SUCCESS
    assert client.do(f"plain {100 * MIB}") == SUCCESS
    client.tell("ipc_export 0")
    handle = client.line()
    assert client.answer() == [SUCCESS]
    other.tell("ipc_open")
    other.tell(handle)
    assert other.answer() == [SUCCESS]
    assert used_mib() == 100
    assert other.do("ipc_close 0") == SUCCESS
    assert used_mib() == 100
    assert client.do("free 0") == SUCCESS
    assert used_mib() == 0


def test_external_memory_is_the_importers(client: Client, used_mib: Used) -> None:
    assert client.do(f"external {100 * MIB}") == SUCCESS
    assert used_mib() == 100
    assert client.do(f"external {CAP_MIB * MIB}") == OUT_OF_MEMORY
    assert client.do("free_external 0") == SUCCESS
    assert used_mib() == 0


def test_a_pool_counts_with_what_it_keeps(client: Client, used_mib: Used) -> None:
    assert client.do(f"pool {64 * MIB}") == SUCCESS
    for _ in range(3):
        assert client.do(f"from_pool 0 {32 * MIB}") == SUCCESS
    assert used_mib() == 96
    for index in (1, 2, 3):
        assert client.do(f"free_async {index}") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == 64
    # What fits into what it has costs no more.
    assert client.do(f"from_pool 0 {50 * MIB}") == SUCCESS
    assert used_mib() == 64
    assert client.do("free_async 4") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert client.do(f"trim 0 {32 * MIB}") == SUCCESS
    assert used_mib() == 32
    assert client.do("end_pool 0") == SUCCESS
    assert used_mib() == 0


@pytest.mark.parametrize("wait", ["sync", "sync_event"])
def test_what_a_pool_gives_back_at_a_wait_is_off_the_books_after_it(wait: str, client: Client, used_mib: Used) -> None:
    assert client.do("pool 0") == SUCCESS
    assert client.do(f"from_pool 0 {64 * MIB}") == SUCCESS
    assert client.do("free_async 1") == SUCCESS
    assert used_mib() == 64
    assert client.do(wait) == SUCCESS
    assert used_mib() == 0


def test_a_pool_keeps_nothing_that_ended_with_the_context(client: Client, used_mib: Used) -> None:
    assert client.do(f"pool {1 << 40}") == SUCCESS
    assert client.do(f"from_pool 0 {64 * MIB}") == SUCCESS
    assert client.do("free_async 1") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == 64
    assert client.do("reset") == SUCCESS
    assert used_mib() == 0


def test_what_is_in_use_of_a_pool_that_ended_counts_until_it_is_freed(client: Client, used_mib: Used) -> None:
    assert client.do(f"pool {1 << 40}") == SUCCESS
    assert client.do(f"from_pool 0 {10 * MIB}") == SUCCESS
    assert client.do("end_pool 0") == SUCCESS
    assert used_mib() == 10
    assert client.do("free_async 1") == SUCCESS
    assert used_mib() == 0


def test_a_pool_gives_back_what_it_keeps_before_anything_is_refused(client: Client, used_mib: Used) -> None:
    assert client.do(f"pool {1 << 40}") == SUCCESS
    assert client.do(f"from_pool 0 {CAP_MIB * MIB}") == SUCCESS
    assert client.do("plain 1") == OUT_OF_MEMORY
    assert client.do("free_async 1") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == CAP_MIB
    assert client.do(f"plain {CAP_MIB * MIB}") == SUCCESS
    assert client.do("reserved 0") == SUCCESS
    assert used_mib() == CAP_MIB


@pytest.mark.parametrize("cap_mib", [1024, 1000])
def test_stream_ordered_memory_is_capped_exactly(cap_mib: int, stage: Stage) -> None:
    """Also where the cap is not a multiple of the steps that a pool grows by: what it need not have it gives back."""
    with ScriptedManager(stage.directory, replace(WELCOME, memory_cap_bytes=cap_mib * MIB)) as manager:
        client = stage.memory_client().ready()
        assert client.do("start") == SUCCESS
        for _ in range(9):
            assert client.do(f"asynchronous {100 * MIB}") == SUCCESS
        rest = cap_mib - 900
        assert client.do(f"asynchronous {(rest + 2) * MIB}") == OUT_OF_MEMORY
        assert client.do(f"asynchronous {rest * MIB}") == SUCCESS
        assert client.do(f"asynchronous {2 * MIB}") == OUT_OF_MEMORY
        assert manager.used_bytes == cap_mib * MIB
        for index in range(10):
            assert client.do(f"free {index}") == SUCCESS
        assert client.do("sync") == SUCCESS
        assert manager.used_bytes == 0


@pytest.mark.parametrize("how", ["graph", "captured"])
def test_memory_of_graphs_counts_from_the_first_launch_until_it_is_trimmed(
    how: str, client: Client, used_mib: Used
) -> None:
    assert client.do(f"{how} {100 * MIB}") == SUCCESS
    assert used_mib() == 0
    assert client.do("launch 0") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == 100
    assert client.do("trim_graphs") == SUCCESS
    assert used_mib() == 0
    assert client.do("upload 0") == SUCCESS
    assert used_mib() == 100


def test_graphs_give_back_what_they_keep_before_anything_is_refused(client: Client, used_mib: Used) -> None:
    assert client.do(f"graph {1000 * MIB}") == SUCCESS
    assert client.do("launch 0") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == 1000
    assert client.do(f"plain {CAP_MIB * MIB}") == SUCCESS
    assert used_mib() == CAP_MIB


@pytest.mark.misuses("*: no context", "*: unknown *")
def test_wrong_calls_get_the_drivers_own_answers(stage: Stage, client: Client, used_mib: Used) -> None:
    bare = stage.memory_client(LD_PRELOAD="").ready()
    hooked = stage.memory_client().ready()
    for command in ("nowhere", "info", "plain 4096", "array 64 64", "pitched 64 64", "init", "nowhere", "plain 4096"):
        for each in (bare, hooked):
            each.tell(command)
        # Not initialised, then without a context.
        assert hooked.answer()[:1] == bare.answer()[:1]
    assert [bare.do("start"), hooked.do("start")] == [SUCCESS] * 2
    for command in ("nowhere", "plain 0", "pitched 0 64", "array 0 64", "asynchronous 0"):
        assert hooked.do(command) == bare.do(command) != SUCCESS
    assert used_mib() == 0


def test_managed_memory_can_be_left_out(stage: Stage) -> None:
    with ScriptedManager(stage.directory, replace(WELCOME, ignore_managed=True)) as manager:
        client = stage.memory_client().ready()
        assert client.do("start") == SUCCESS
        assert client.do(f"managed {2 * CAP_MIB * MIB}") == SUCCESS
        assert client.do(f"plain {CAP_MIB * MIB}") == SUCCESS
        assert client.do("free 0") == SUCCESS
        assert manager.used_bytes == CAP_MIB * MIB


def test_host_memory_counts_only_where_the_gpu_has_no_other(client: Client, used_mib: Used) -> None:
    assert client.do(f"host {100 * MIB}") == SUCCESS
    assert used_mib() == 0
    assert client.do("free_host 0") == SUCCESS


def test_a_context_that_does_not_fit_is_refused(stage: Stage) -> None:
    with ScriptedManager(stage.directory) as manager:
        manager.memory = Memory("scripted", CAP_MIB * MIB, ("",), {"": 300 * MIB})
        client = stage.memory_client().ready()
        assert client.do("start") == SUCCESS
        assert manager.used_bytes == 300 * MIB
        assert client.do("start") == SUCCESS  # retained again, not made
        assert manager.used_bytes == 300 * MIB
        assert [client.do("create 0"), client.do("create 0")] == [SUCCESS] * 2
        assert client.do("create 0") == OUT_OF_MEMORY
        assert manager.memory.refused_context_bytes == 300 * MIB
        assert client.do("destroy 1") == SUCCESS
        assert client.do("create 0") == SUCCESS
        assert manager.used_bytes == 900 * MIB


@pytest.mark.parametrize("how", ["graph", "captured"])
def test_a_graph_whose_memory_does_not_fit_is_not_launched(how: str, client: Client, used_mib: Used) -> None:
    assert client.do(f"plain {900 * MIB}") == SUCCESS
    assert client.do(f"{how} {124 * MIB}") == SUCCESS
    assert client.do(f"{how} {126 * MIB}") == SUCCESS
    assert client.do("launch 2") == client.do("upload 2") == OUT_OF_MEMORY
    assert used_mib() == 900
    assert client.do("launch 1") == SUCCESS
    assert client.do("launch 1") == SUCCESS
    assert client.do("sync") == SUCCESS
    assert used_mib() == CAP_MIB
    assert client.do("plain 1") == SUCCESS  # in the place of what the graph keeps and does not use
    assert client.do("launch 1") == OUT_OF_MEMORY
    assert client.do("free 3") == SUCCESS
    assert client.do("launch 1") == SUCCESS


def test_what_is_mapped_where_something_was_just_unmapped_counts(
    tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    program = compile_program(tmp_path / "remapped", "memory/remapped.c", *LINK_DRIVER)
    done = subprocess.run(
        [program], env=stage.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["200", "0"])
