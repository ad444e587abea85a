"""The page in which the processes of one allocation say that they use the device."""

import mmap
from collections.abc import Iterator
from typing import Any

import pytest

from cuda_hook._core import ffi, lib
from cuda_hook.gate import NO_PLACE, SiblingsPage
from tests.kit.manager.siblings import open_siblings


@pytest.fixture
def page() -> Iterator[SiblingsPage]:
    made = SiblingsPage()
    yield made
    made.close()


@pytest.fixture
def mapped(page: SiblingsPage) -> Iterator[Any]:
    """As its clients have it."""
    with mmap.mmap(page.fd, lib.ES_PAGE_BYTES) as memory, ffi.from_buffer(memory) as buffer:
        yield ffi.cast("struct es_siblings_page *", buffer)


def test_a_client_sees_who_is_at_work_and_who_was(page: SiblingsPage, mapped: Any) -> None:
    one, other = page.take(writes=True), page.take(writes=True)
    before = lib.es_siblings_seen(mapped, one)
    assert before % 2 == 0
    lib.es_siblings_use(mapped, one, True)
    assert lib.es_siblings_seen(mapped, one) == before, "its own work is none of its siblings'"
    lib.es_siblings_use(mapped, other, True)
    lib.es_siblings_use(mapped, other, True)
    assert lib.es_siblings_seen(mapped, one) % 2 == 1
    lib.es_siblings_use(mapped, other, False)
    after = lib.es_siblings_seen(mapped, one)
    assert after % 2 == 0
    assert after != before


def test_one_that_died_at_work_is_at_work_no_more(page: SiblingsPage, mapped: Any) -> None:
    one, other = page.take(writes=True), page.take(writes=True)
    lib.es_siblings_use(mapped, other, True)
    page.give(other)
    after = lib.es_siblings_seen(mapped, one)
    assert after % 2 == 0
    assert page.take(writes=True) == other
    assert lib.es_siblings_seen(mapped, one) == after


def test_one_that_does_not_say_is_taken_to_be_at_work(page: SiblingsPage, mapped: Any) -> None:
    one, silent = page.take(writes=True), page.take(writes=False)
    assert silent == NO_PLACE
    assert lib.es_siblings_seen(mapped, one) % 2 == 1
    lib.es_siblings_use(mapped, silent, True)
    page.give(silent)
    assert lib.es_siblings_seen(mapped, one) % 2 == 0


def test_there_are_places_for_so_many(page: SiblingsPage, mapped: Any) -> None:
    places = [page.take(writes=True) for _ in range(NO_PLACE + 1)]
    assert places == list(range(NO_PLACE + 1))
    assert lib.es_siblings_seen(mapped, 0) % 2 == 1, "the last one has no place"
    page.give(NO_PLACE)
    assert lib.es_siblings_seen(mapped, 0) % 2 == 0


def test_what_a_client_writes_leads_nobody_out_of_the_page(page: SiblingsPage, mapped: Any) -> None:
    one = page.take(writes=True)
    mapped.places = (1 << 32) - 1
    assert lib.es_siblings_seen(mapped, one) % 2 == 0
    other = page.take(writes=True)
    assert mapped.places == other + 1


def test_nothing_is_open_of_a_closed_one_though_somebody_has_it_and_who_leaves_then_harms_nothing() -> None:
    before = open_siblings()
    made = SiblingsPage()
    assert len(open_siblings() - before) == 2
    place = made.take(writes=True)
    made.close()
    assert open_siblings() == before
    made.give(place)
    made.close()
