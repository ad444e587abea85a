"""Virtual memory counts until all its handles and mappings are gone; what is exported counts once."""

import subprocess
from pathlib import Path

from tests.kit.hook.manager import CAP_MIB, MIB, PATIENCE_S, ScriptedManager, Used
from tests.kit.hook.stage import LINK_DRIVER, OUT_OF_MEMORY, SUCCESS, Client, Stage, compile_program

DEVICE, HOST = 1, 2


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


def test_what_is_mapped_where_something_was_just_unmapped_counts(
    tmp_path: Path, stage: Stage, manager: ScriptedManager
) -> None:
    program = compile_program(tmp_path / "remapped", "memory/remapped.c", *LINK_DRIVER)
    done = subprocess.run(
        [program], env=stage.environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["200", "0"])
