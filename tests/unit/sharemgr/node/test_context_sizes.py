"""What contexts count under an allocation's cap, and what is told of one that does not fit."""

import pytest

from cuda_hook.gate import GatePages
from edgeshare.contract.units import MIB
from sharemgr.node.memory.allowances import Memory


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
    # Nor is an allocation refused for it, and what does not fit in any case leaves it as it is.
    assert not memory.reserve(1, 0, 1001 * MIB).granted
    assert memory.used_bytes() == 600 * MIB
    assert memory.reserve(1, 0, 900 * MIB).granted
    assert memory.client_bytes(1) >= 900 * MIB
    memory.freed(1, 0, 900 * MIB)
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


def fresh(clients: int = 1, cap_mib: int = 1000) -> Memory:
    """With clients that have each made a context of a size that nobody knows."""
    memory = Memory("one", cap_mib * MIB, ("GPU-a",), {}, unseen_context_bytes=600 * MIB)
    for client_id in range(1, clients + 1):
        pages = GatePages.create(client_id)
        pages.close_fds()
        memory.join(client_id, pages)
        assert memory.reserve_context(client_id, 0).granted
    return memory


def seen(memory: Memory, client_id: int, size_mib: int) -> None:
    """The driver was looked at between two looks of a second."""
    memory.look()
    memory.reconcile(client_id, {"GPU-a": size_mib * MIB}, again=True)


def test_what_hangs_on_a_guess_is_answered_when_two_looks_have_found_the_same() -> None:
    memory = fresh()
    told = memory.reserve(1, 0, 750 * MIB, waits=True)
    assert (told.granted, told.unsure) == (False, True)
    assert memory.used_bytes() == 600 * MIB
    for size_mib in (100, 250):
        seen(memory, 1, size_mib)
        # By the first look it would fit; but the second finds more.
        told = memory.reserve(1, 0, 750 * MIB, waits=True)
        assert (told.granted, told.unsure) == (False, True)
    seen(memory, 1, 250)
    told = memory.reserve(1, 0, 750 * MIB + 1, waits=True)
    assert (told.granted, told.unsure, told.free_bytes) == (False, False, 750 * MIB)
    assert memory.reserve(1, 0, 750 * MIB, waits=True).granted


def test_what_fits_beside_a_guess_or_in_no_case_waits_for_nothing() -> None:
    memory = fresh()
    assert not memory.reserve(1, 0, 1001 * MIB, waits=True).unsure
    assert memory.reserve(1, 0, 100 * MIB, waits=True).granted
    assert memory.reserve(1, 0, 350 * MIB, waits=True).unsure
    assert memory.reserve(1, 0, 350 * MIB).granted
    # The time was over once: no other waits for the same guess.
    assert memory.reserve(1, 0, 500 * MIB, waits=True).granted


def test_a_context_that_may_still_be_being_made_is_not_measured_between_two_looks_of_a_second() -> None:
    """Also where its process asked for memory since the look."""
    memory = fresh(clients=2)
    for _ in range(3):
        seen(memory, 2, 10)
    memory.look()
    assert memory.reserve(2, 0, 900 * MIB, waits=True).unsure
    memory.reconcile(2, {"GPU-a": 10 * MIB}, again=True)
    assert memory.used_bytes() == 1000 * MIB
    seen(memory, 2, 0)
    assert memory.used_bytes() == 1000 * MIB
    seen(memory, 2, 250)
    assert memory.used_bytes() == 850 * MIB


def test_what_the_driver_does_not_say_is_not_waited_for() -> None:
    memory = fresh()
    assert memory.reserve(1, 0, 900 * MIB, waits=True).unsure
    memory.look()
    memory.reconcile(1, {}, again=True)
    assert memory.reserve(1, 0, 900 * MIB, waits=True).granted


def test_what_is_not_listed_in_two_looks_of_a_second_is_not_waited_for() -> None:
    memory = fresh()
    for _ in range(2):
        assert memory.reserve(1, 0, 900 * MIB, waits=True).unsure
        memory.look()
        memory.reconcile(1, {"GPU-a": 0})
    assert memory.reserve(1, 0, 900 * MIB, waits=True).granted


def test_nothing_waits_for_a_process_that_is_gone() -> None:
    memory = fresh(clients=2)
    assert memory.leave(2)
    assert memory.reserve(1, 0, 990 * MIB, waits=True).unsure
    memory.driver_freed(2)
    seen(memory, 1, 250)
    seen(memory, 1, 250)
    assert memory.reserve(1, 0, 750 * MIB, waits=True).granted


def test_the_size_of_a_context_that_became_known_stays_set_aside_for_those_that_were_guessed() -> None:
    sizes: dict[str, int] = {}
    memory = Memory("one", 700 * MIB, ("GPU-a",), sizes, unseen_context_bytes=600 * MIB)
    assert memory.reserve_context(1, 0).granted
    sizes["GPU-a"] = 250 * MIB
    assert memory.reserve_context(2, 0).granted
    assert memory.used_bytes() == 500 * MIB
    assert not memory.reserve_context(3, 0).granted


def test_the_peak_is_the_most_that_was_in_use_at_once_and_stays_when_clients_are_gone() -> None:
    memory = Memory("one", 1000 * MIB, ("GPU-a", "GPU-b"), {})
    pages = [GatePages.create(epoch) for epoch in (1, 2)]
    for page in pages:
        page.close_fds()
    memory.join(1, pages[0])
    assert memory.reserve(1, 0, 350 * MIB).granted
    memory.freed(1, 0, 50 * MIB)
    # What one may have without asking is in use by nobody; alone, it is seen as it asks.
    assert memory.peak_bytes(0) == 350 * MIB
    memory.join(2, pages[1])
    assert memory.reserve(2, 0, 200 * MIB).granted
    memory.look()
    memory.freed(1, 0, 300 * MIB)
    assert [memory.peak_bytes(device) for device in (0, 1)] == [500 * MIB, 0]
    assert not memory.reserve(2, 0, 900 * MIB).granted
    memory.look()
    assert memory.peak_bytes(0) == 500 * MIB
    # Granted once what nobody uses was taken back.
    assert memory.reserve(1, 0, 10 * MIB).granted
    assert memory.reserve(2, 0, 790 * MIB).granted
    assert memory.peak_bytes(0) == 1000 * MIB
    memory.declare(1, 1, 7 * MIB)
    memory.look()
    for client_id in (1, 2):
        assert memory.leave(client_id)
        memory.driver_freed(client_id)
    assert memory.used_bytes() == 0
    assert [memory.peak_bytes(device) for device in (0, 1)] == [1000 * MIB, 7 * MIB]
