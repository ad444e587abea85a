"""What contexts count under an allocation's cap, and what is told of one that does not fit."""

import pytest

from cuda_hook.gate import GatePages
from edgeshare.units import MIB
from sharemgr.node.memory import Memory


def test_a_context_that_does_not_fit_is_told_once_for_each_size_that_it_has() -> None:
    told: list[str] = []
    sizes: dict[str, int] = {}
    memory = Memory("one", 100 * MIB, ("GPU-a",), sizes, told.append)

    def tries(size_bytes: int) -> bool:
        sizes["GPU-a"] = size_bytes
        granted = [memory.reserve_context(1, 0).granted for _ in range(3)]
        assert memory.refused_context_bytes == (0 if granted[-1] else size_bytes)
        return granted[-1]

    assert not tries(300 * MIB)
    assert not tries(200 * MIB - 1)
    assert not tries(200 * MIB - 2)
    assert tries(10 * MIB)
    assert not tries(300 * MIB)
    first, second = told
    assert "takes about 300 MiB" in first
    assert "100 MiB of the cap of 100 MiB are free: raise the cap (edge/gpu-memory-mib" in first
    assert "takes about 200 MiB" in second


@pytest.mark.parametrize("end_first", [True, False], ids=["its-end", "the-next-session"])
def test_a_process_that_is_back_has_its_contexts_counted_whichever_of_its_sessions_is_heard_first(
    end_first: bool,
) -> None:
    """What a session had left in its socket may be read after the process has said HELLO over another one."""
    memory = Memory("one", 1000 * MIB, ("GPU-a",), {"GPU-a": 100 * MIB})
    pages = [GatePages.create(epoch) for epoch in (1, 2)]
    for page in pages:
        page.close_fds()

    def comes_back() -> None:
        memory.join(2, pages[1])
        if end_first:
            memory.succeed(2, 1)
        # One of its two has ended, which its first session did not tell.
        memory.declare_context(2, 0)
        memory.declared(2)

    def ends() -> None:
        assert memory.leave(1)
        if not end_first:
            memory.succeed(2, 1)

    memory.join(1, pages[0])
    assert [memory.reserve_context(1, 0).granted for _ in range(2)] == [True, True]
    for step in (ends, comes_back) if end_first else (comes_back, ends):
        step()
    assert memory.used_bytes() == memory.client_bytes(2) == 100 * MIB


def test_a_context_of_a_size_that_nobody_knows_sets_a_guess_aside_and_is_not_refused_for_it() -> None:
    sizes: dict[str, int] = {}
    memory = Memory("one", 1000 * MIB, ("GPU-a",), sizes, unseen_context_bytes=600 * MIB)
    for client_id in (1, 2, 3):
        pages = GatePages.create(client_id)
        pages.close_fds()
        memory.join(client_id, pages)
        assert memory.reserve_context(client_id, 0).granted
        assert memory.used_bytes() == min(1000, 600 * client_id) * MIB
    # One that was not made leaves nothing behind.
    memory.context_ended(3, 0)
    memory.context_ended(2, 0)
    assert memory.used_bytes() == 600 * MIB
    # Nor is an allocation refused for it.
    assert not memory.reserve(1, 0, 1001 * MIB).granted
    assert memory.used_bytes() == 0
    assert memory.reserve_context(1, 0).granted
    assert memory.reserve(1, 0, 900 * MIB).granted
    assert memory.client_bytes(1) >= 900 * MIB
    memory.freed(1, 0, 900 * MIB)
    memory.context_ended(1, 0)
    memory.context_ended(1, 0)
    assert memory.reserve_context(1, 0).granted
    for _ in range(2):
        memory.look()
        memory.reconcile(1, {"GPU-a": 250 * MIB})
    assert sizes == {"GPU-a": 250 * MIB}
    assert memory.reserve_context(2, 0).granted
    assert memory.used_bytes() == 500 * MIB


def test_a_guess_does_not_stay_where_the_driver_does_not_say_what_a_process_has() -> None:
    memory = Memory("one", 1000 * MIB, ("GPU-a", "GPU-b"), {}, unseen_context_bytes=600 * MIB)
    pages = GatePages.create(1)
    pages.close_fds()
    memory.join(1, pages)
    assert memory.reserve_context(1, 0).granted
    assert memory.reserve_context(1, 1).granted
    for _ in range(3):
        memory.look()
        memory.reconcile(1, {"GPU-b": 250 * MIB})
    assert memory.info(0).used_bytes == 0
    assert memory.info(1).used_bytes == 250 * MIB
