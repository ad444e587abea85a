"""What a context keeps for malloc and printf in kernels is counted when it is asked for."""

import pytest

from tests.kit.hook.manager import CAP_MIB, MIB, ScriptedManager
from tests.kit.hook.stage import OUT_OF_MEMORY, SUCCESS, Client

STACK, PRINTF, HEAP = 0, 1, 2
USUAL_MIB = {PRINTF: 1, HEAP: 8}


@pytest.mark.parametrize("which", USUAL_MIB)
def test_the_last_byte_fits_and_one_more_is_refused(client: Client, manager: ScriptedManager, which: int) -> None:
    most = (CAP_MIB + USUAL_MIB[which]) * MIB
    assert client.do(f"limit {which} {most + 1}") == OUT_OF_MEMORY
    assert manager.used_bytes == 0
    assert client.do(f"limit {which} {most}") == SUCCESS
    assert manager.used_bytes == CAP_MIB * MIB
    assert client.do("plain 1") == OUT_OF_MEMORY
    assert client.do(f"limit {which} {most - MIB}") == SUCCESS
    assert client.do(f"plain {MIB}") == SUCCESS


def test_a_heap_that_grows_needs_no_more_than_it_grows_by(client: Client, manager: ScriptedManager) -> None:
    for mib in (CAP_MIB - 200, CAP_MIB - 100, CAP_MIB):
        assert client.do(f"limit {HEAP} {(8 + mib) * MIB}") == SUCCESS
        assert manager.used_bytes == mib * MIB
    assert client.do(f"limit {HEAP} {(9 + CAP_MIB) * MIB}") == OUT_OF_MEMORY
    assert manager.used_bytes == CAP_MIB * MIB
    assert client.do(f"limit {HEAP} {8 * MIB}") == SUCCESS
    assert manager.used_bytes == 0


def test_what_the_driver_refuses_counts_nowhere(client: Client, manager: ScriptedManager) -> None:
    assert client.do(f"limit {HEAP} {108 * MIB}") == SUCCESS
    assert client.do(f"limit 17 {MIB}") == 215  # CUDA_ERROR_UNSUPPORTED_LIMIT
    assert manager.used_bytes == 100 * MIB


def test_it_ends_with_its_context(client: Client, manager: ScriptedManager) -> None:
    assert client.do("create 0") == SUCCESS
    for which, usual_mib in USUAL_MIB.items():
        assert client.do(f"limit {which} {(usual_mib + 100) * MIB}") == SUCCESS
    assert manager.used_bytes == 200 * MIB
    assert client.do("destroy 0") == SUCCESS
    assert manager.used_bytes == 0


def test_others_take_no_memory_that_is_known(client: Client, manager: ScriptedManager) -> None:
    assert client.do(f"limit {STACK} 524288") == SUCCESS
    assert manager.used_bytes == 0
