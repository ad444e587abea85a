"""Memory: the cap holds exactly, whoever reserves, dies or is measured."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.errors import InvalidRequest
from sharemgr.node.ledger import MAX_RESERVATIONS, Info, Ledger, Verdict


def test_what_fits_is_granted_and_one_byte_more_is_refused() -> None:
    ledger = Ledger(100)
    assert ledger.reserve(1, 1, 0, 60) == Verdict(True, 100)
    assert ledger.reserve(2, 1, 0, 41) == Verdict(False, 40)
    assert ledger.reserve(2, 2, 0, 40) == Verdict(True, 40)
    assert ledger.reserve(1, 2, 0, 0) == Verdict(True, 0)
    assert ledger.info(0) == Info(100, 100)


def test_a_commit_counts_what_the_driver_took() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 10)
    ledger.commit(1, 1, 16)
    assert ledger.info(0).used_bytes == 16
    ledger.freed(1, 0, 16)
    assert ledger.info(0).used_bytes == 0


def test_a_cancelled_reservation_is_free_again() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 7, 0, 100)
    ledger.cancel(1, 7)
    assert ledger.reserve(2, 7, 0, 100).granted


def test_each_device_has_the_cap_for_itself() -> None:
    ledger = Ledger(100, devices=2)
    assert ledger.reserve(1, 1, 0, 100).granted
    assert ledger.reserve(1, 2, 1, 100).granted
    assert not ledger.reserve(1, 3, 1, 1).granted
    assert ledger.client_bytes(1) == 200


def test_the_memory_of_a_dead_client_counts_until_the_driver_has_freed_it() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 50)
    ledger.commit(1, 1, 50)
    ledger.reserve(1, 2, 0, 20)  # it died inside the driver, which may have given it
    ledger.client_gone(1)
    assert ledger.dying() == {1: 70}
    assert ledger.reserve(2, 1, 0, 31) == Verdict(False, 30)
    ledger.driver_freed(1)
    assert ledger.dying() == {}
    assert ledger.reserve(2, 1, 0, 100).granted


def test_a_client_that_had_nothing_leaves_nothing() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 50)
    ledger.cancel(1, 1)
    ledger.client_gone(1)
    ledger.client_gone(2)
    assert ledger.dying() == {}
    assert ledger.client_bytes(1) == 0


def test_the_driver_frees_nothing_of_a_client_that_lives() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 50)
    ledger.driver_freed(1)
    assert ledger.info(0).used_bytes == 50


def test_overhead_lowers_what_is_free_and_takes_nothing_away() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 60)
    ledger.commit(1, 1, 60)
    ledger.reconcile(1, 0, 130)
    assert ledger.info(0) == Info(100, 130)
    assert ledger.info(0).free_bytes == 0
    assert ledger.reserve(1, 2, 0, 1) == Verdict(False, 0)
    ledger.freed(1, 0, 60)
    ledger.reconcile(1, 0, 70)
    assert ledger.info(0).used_bytes == 70
    assert ledger.reserve(1, 3, 0, 30).granted


def test_what_the_driver_shows_of_an_open_reservation_is_no_overhead() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 60)
    ledger.reconcile(1, 0, 62)
    assert ledger.info(0).used_bytes == 62
    ledger.commit(1, 1, 60)
    ledger.reconcile(1, 0, 62)
    assert ledger.info(0).used_bytes == 62


def test_a_client_that_is_gone_or_unknown_is_not_measured() -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 10)
    ledger.client_gone(1)
    ledger.reconcile(1, 0, 90)
    ledger.reconcile(2, 0, 90)
    assert ledger.info(0).used_bytes == 10


def test_a_client_that_never_reserves_is_measured_from_when_it_joined() -> None:
    ledger = Ledger(100)
    ledger.join(1)
    ledger.reconcile(1, 0, 30)
    assert ledger.info(0).used_bytes == 30
    ledger.client_gone(1)
    assert ledger.dying() == {1: 30}
    ledger.driver_freed(1)
    assert ledger.info(0).used_bytes == 0


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda ledger: ledger.reserve(1, 1, 0, 5), "number 1, which is open"),
        (lambda ledger: ledger.reserve(1, 2, 1, 5), "device 1"),
        (lambda ledger: ledger.commit(1, 2, 5), "reservation 2, which is not open"),
        (lambda ledger: ledger.commit(1, 1, -1), "-1 bytes"),
        (lambda ledger: ledger.cancel(3, 1), "not open"),
        (lambda ledger: ledger.freed(1, 0, 1), "of which it has 0"),
        (lambda ledger: ledger.freed(1, 0, -1), "-1 bytes"),
        (lambda ledger: ledger.freed(1, -1, 0), "device -1"),
        (lambda ledger: ledger.info(7), "device 7"),
    ],
)
def test_what_a_client_cannot_mean_is_refused_and_changes_nothing(say: Callable[[Ledger], object], words: str) -> None:
    ledger = Ledger(100)
    ledger.reserve(1, 1, 0, 10)
    with pytest.raises(InvalidRequest, match=words):
        say(ledger)
    assert ledger.info(0).used_bytes == 10
    ledger.commit(1, 1, 10)


def test_a_negative_size_is_refused() -> None:
    ledger = Ledger(100)
    assert not ledger.reserve(1, 1, 0, -1).granted
    assert ledger.info(0).used_bytes == 0


def test_a_client_cannot_fill_the_manager_with_reservations() -> None:
    ledger = Ledger(100)
    for number in range(MAX_RESERVATIONS):
        ledger.reserve(1, number, 0, 0)
    with pytest.raises(InvalidRequest, match="the most there may be"):
        ledger.reserve(1, MAX_RESERVATIONS, 0, 0)
    assert ledger.reserve(2, 1, 0, 0).granted


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "commit", "cancel", "freed", "gone", "driver", "reconcile"]),
            st.integers(1, 3),
            st.integers(0, 4),
            st.integers(0, 1),
            st.integers(0, 120),
        ),
        max_size=60,
    )
)
def test_use_is_the_sum_over_clients_and_reservations_never_pass_the_cap(
    steps: list[tuple[str, int, int, int, int]],
) -> None:
    ledger = Ledger(100, devices=2)
    for step, client_id, number, device, size_bytes in steps:
        before = ledger.info(device)
        try:
            match step:
                case "reserve":
                    verdict = ledger.reserve(client_id, number, device, size_bytes)
                    assert verdict.granted == (size_bytes <= before.free_bytes)
                    assert verdict.free_bytes == before.free_bytes
                case "commit":
                    ledger.commit(client_id, number, size_bytes)
                case "cancel":
                    ledger.cancel(client_id, number)
                case "freed":
                    ledger.freed(client_id, device, size_bytes)
                case "gone":
                    ledger.client_gone(client_id)
                case "driver":
                    ledger.driver_freed(client_id)
                case "reconcile":
                    ledger.reconcile(client_id, device, size_bytes)
        except InvalidRequest:
            assert ledger.info(device) == before
        used_bytes = ledger.info(0).used_bytes + ledger.info(1).used_bytes
        assert used_bytes == sum(ledger.client_bytes(each) for each in range(1, 4))
        assert min(ledger.info(0).used_bytes, ledger.info(1).used_bytes) >= 0
