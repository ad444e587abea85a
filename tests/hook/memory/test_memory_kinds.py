"""Every way to get device memory is counted, to the byte, until it is given back."""

from dataclasses import replace

import pytest

from sharemgr.node.memory.allowances import Memory
from tests.kit.hook.manager import CAP_MIB, MIB, WELCOME, ScriptedManager, Used
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client, Stage

LAYERED, SPARSE, DEFERRED = 0x01, 0x40, 0x80

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
