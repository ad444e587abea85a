"""Pools and graphs count with what they keep, and give that back before anything is refused."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.hook.manager import CAP_MIB, MIB, PATIENCE_S, WELCOME, ScriptedManager, Used
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client, Stage, compile_program


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


@pytest.mark.parametrize(("what", "refused"), [("asked", ""), ("trimmed", "refused 1\n"), ("current", "")])
def test_a_pool_ends_when_nobody_is_inside_the_driver_on_its_behalf(
    what: str, refused: str, stage: Stage, manager: ScriptedManager, tmp_path: Path
) -> None:
    """Another thread asks about it, makes it give back what it keeps, or has just got it to allocate from."""
    compile_program(tmp_path / "libcuda.so.1", "memory/pool_driver.c", "-shared", "-fPIC")
    driver = (f"-L{tmp_path}", "-l:libcuda.so.1")
    program = compile_program(tmp_path / "pool_ends", "memory/pool_ends.c", *driver)
    environment = stage.environment(LD_LIBRARY_PATH=str(tmp_path))
    done = subprocess.run(
        [program, what], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"{refused}misused 0\n")


def test_an_allocation_asks_the_driver_little(stage: Stage, manager: ScriptedManager, tmp_path: Path) -> None:
    """For the context; of a pool for the device's one, what that has unused (two figures), and then what it has."""
    compile_program(tmp_path / "libcuda.so.1", "memory/pool_driver.c", "-shared", "-fPIC")
    driver = (f"-L{tmp_path}", "-l:libcuda.so.1")
    program = compile_program(tmp_path / "pool_calls", "memory/pool_calls.c", *driver)
    environment = stage.environment(LD_LIBRARY_PATH=str(tmp_path))
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, "asked 5\n" * 2 + "asked 1\n")
